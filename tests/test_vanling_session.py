"""The vanling cloud's Session over a real socket: modes, phases, barge-in, empty input, time."""

from test_vanling_harness import talk

from host_sim.cloud.providers.scripted import ScriptedAsr


def test_auto_ends_the_turn_itself_and_answers_sentence_by_sentence():
    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.speak()
        reply = await device.reply()
        assert reply["stt"] == "First one. Second one!"
        assert [text for text, _ in reply["sentences"]] == ["First one.", "Second one!"]
        assert all(pcm for _, pcm in reply["sentences"])

    talk(scenario, asr=ScriptedAsr(["First one. Second one!"]))
