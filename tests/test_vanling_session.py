"""The vanling cloud's Session over a real socket: modes, phases, barge-in, empty input, time."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from test_cloud_harness import FailsOnce, HeldAsr, HeldTts
from test_vanling_harness import FRAME_MS, QUICK, SPOKEN, connect, greet, run, silence, talk, voice

from host_sim.cloud.providers.base import ProviderBusy
from host_sim.cloud.providers.scripted import ScriptedAsr
from host_sim.cloud.providers.tone import tone
from host_sim.cloud.vanling import frames
from host_sim.cloud.vanling.mouth import EpochOutlet
from host_sim.cloud.vanling.nodes import TurnOver, Words
from host_sim.cloud.vanling.options import VanlingOptions
from host_sim.cloud.vanling.session import Session

CLOCKS = replace(QUICK, no_audio=0.1)  # for tests in which the clock has to end a turn
SOON = replace(QUICK, no_audio=0.1, inactivity=0.4)


class KeepingAsr(ScriptedAsr):
    """Remembers how many milliseconds each utterance had."""

    def __init__(self, transcripts):
        super().__init__(transcripts)
        self.ms = []

    async def transcribe(self, pcm):
        self.ms.append(len(pcm) // 32)
        return await super().transcribe(pcm)


# Modes


def test_auto_ends_the_turn_itself_and_answers_sentence_by_sentence():
    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.speak()
        reply = await device.reply()
        assert reply["stt"] == "First one. Second one!"
        assert [text for text, _ in reply["sentences"]] == ["First one.", "Second one!"]
        assert all(pcm for _, pcm in reply["sentences"])
        assert [fields["text"] for fields in cloud.seen("output_text")] == [
            "First one.",
            "Second one!",
        ]

    talk(scenario, asr=ScriptedAsr(["First one. Second one!"]))


def test_a_reply_is_stt_then_the_emotion_then_tts_with_each_sentence_begun_and_ended():
    async def scenario(cloud, device):
        await device.say("text", text="hi. you")
        seen = []
        while not seen or seen[-1] != ("tts", "stop"):
            item = await device.receive()
            if isinstance(item, dict):
                seen.append((item["type"], item.get("state")))
            elif seen[-1] != "audio":
                seen.append("audio")
        sentence = [("tts", "sentence_start"), "audio", ("tts", "sentence_end")]
        assert seen == [
            ("stt", None),
            ("llm", None),
            ("tts", "start"),
            *sentence,
            *sentence,
            ("tts", "stop"),
        ]

    talk(scenario)


def test_auto_hears_again_only_after_the_next_listen_start():
    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.speak()
        assert (await device.reply())["stt"] == "one"
        await device.speak()  # nobody asked for this
        await device.listen("start", mode="auto")
        await device.speak()
        assert (await device.reply())["stt"] == "two"

    talk(scenario, asr=ScriptedAsr(["one", "two", "three"]))


def test_200_ms_of_silence_in_the_audio_end_the_turn_and_180_do_not():
    asr = KeepingAsr(["hello there"])

    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        # 10 ms belong to the last voiced window at the most.
        await device.speak(voice(600) + silence(180) + voice(300) + silence(480))
        await device.reply()
        assert 1080 + 200 <= asr.ms[0] <= 1080 + 200 + FRAME_MS + 10

    talk(scenario, asr=asr, limits=replace(QUICK, no_audio=30))


def test_only_a_little_of_the_silence_before_speech_is_kept():
    asr = KeepingAsr(["hello there"])

    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.speak(silence(3000) + SPOKEN)
        await device.reply()
        assert 300 + 800 <= asr.ms[0] <= 300 + 800 + 2 * FRAME_MS

    talk(scenario, asr=asr)


def test_without_audio_the_clock_ends_the_turn():
    async def scenario(cloud, device):
        loop = asyncio.get_running_loop()
        await device.listen("start", mode="auto")
        await device.speak(voice(600))
        last = loop.time()
        await device.until("stt")
        assert 0.29 <= loop.time() - last < 1.2

    talk(scenario, limits=replace(QUICK, no_audio=0.3))


def test_manual_ends_with_listen_stop_alone():
    asr = KeepingAsr(["hello there"])

    async def scenario(cloud, device):
        await device.listen("start", mode="manual")
        await device.speak(voice(480) + silence(1500))
        await cloud.wait_for("speech_start")
        await asyncio.sleep(0.15)  # longer than the clock that ends other modes
        assert not cloud.seen("utterance")
        await device.speak(voice(480))
        await device.listen("stop")
        reply = await device.reply()
        assert reply["stt"] == "hello there"
        assert asr.ms == [480 + 1500 + 480]

    talk(scenario, asr=asr, limits=CLOCKS)


def test_realtime_goes_on_listening_after_a_reply():
    async def scenario(cloud, device):
        await device.listen("start", mode="realtime")
        for word in ("one", "two", "three"):
            await device.speak()
            assert (await device.reply())["stt"] == word
        assert len(cloud.seen("listen_start")) == 1

    talk(scenario, asr=ScriptedAsr(["one", "two", "three"]))


def test_realtime_keeps_what_is_said_while_the_recogniser_works():
    asr = HeldAsr(["one", "two"])

    async def scenario(cloud, device):
        await device.listen("start", mode="realtime")
        await device.speak()
        await asr.begun.wait()
        await device.speak()
        asr.release.set()
        # The second utterance replaces the answer to the first.
        await device.until("stt", text="one")
        assert (await device.until("stt"))["text"] == "two"

    talk(scenario, asr=asr)


def test_speech_into_a_reply_replaces_it_in_realtime():
    async def scenario(cloud, device):
        tts = cloud.config.tts
        await device.listen("start", mode="realtime")
        await device.speak()
        assert (await device.until("stt"))["text"] == "one. more"
        await tts.begun.get()
        tts.release.release()
        await device.until("tts", state="sentence_end")
        await device.speak()
        while (message := await device.receive()) and not isinstance(message, dict):
            pass
        assert (message["type"], message["state"]) == ("tts", "stop")
        assert (await device.message())["text"] == "two"
        tts.release.release()
        tts.release.release()
        assert (await device.reply())["text"] == "two"

    talk(scenario, asr=ScriptedAsr(["one. more", "two"]), tts=HeldTts())


def test_a_noise_while_the_cloud_speaks_changes_nothing_in_realtime():
    async def scenario(cloud, device):
        tts = cloud.config.tts
        await device.listen("start", mode="realtime")
        await device.speak()
        await tts.begun.get()
        await device.speak()
        await cloud.wait_for("transcript", 2)
        tts.release.release()
        assert (await device.reply())["text"] == "one"
        assert not cloud.seen("empty_input")

    talk(scenario, asr=ScriptedAsr(["one", ""]), tts=HeldTts())


def test_typed_text_is_answered():
    async def scenario(cloud, device):
        await device.say("text", text="what I type")
        reply = await device.reply()
        assert reply["stt"] == reply["text"] == "what I type"

    talk(scenario)


def test_a_wake_word_is_greeted_without_stt():
    async def scenario(cloud, device):
        await device.listen("detect", text="hi computer")
        reply = await device.reply()
        assert (reply["stt"], reply["text"]) == (None, "Hello.")

    talk(scenario)


def test_the_phases_follow_the_conversation():
    async def scenario(cloud, device):
        await device.say("text", text="hi")
        await device.reply()
        await cloud.wait_for("phase", 3)
        phases = [(fields["from"], fields["to"]) for fields in cloud.seen("phase")]
        assert phases == [
            ("idle", "listening"),
            ("listening", "speaking"),
            ("speaking", "listening"),
        ]

    talk(scenario)


def test_nothing_counts_before_hello():
    async def scenario(cloud):
        async with connect(cloud) as device:
            await device.listen("start", mode="auto")
            await device.speak()
            await device.say("text", text="too early")
            await greet(device)
            await device.say("text", text="now")
            assert (await device.reply())["stt"] == "now"

    run(scenario)


def test_without_tts_there_is_text_and_no_audio():
    async def scenario(cloud, device):
        assert "audio_params" not in device.hello
        await device.say("text", text="one. two")
        assert (await device.reply())["sentences"] == [("one.", b""), ("two", b"")]

    talk(scenario, tts="none")


# Interruption


@pytest.mark.parametrize("how", ["abort", "listen start", "text", "wake"])
def test_a_reply_is_interrupted_and_nothing_of_it_comes_later(how):
    async def scenario(cloud, device):
        tts = cloud.config.tts
        await device.say("text", text="one. two. three")
        await tts.begun.get()
        tts.release.release()
        await device.until("tts", state="sentence_start")
        if how == "abort":
            await device.say("abort", reason="wake_word_detected")
        elif how == "text":
            await device.say("text", text="four")
        elif how == "wake":
            await device.listen("detect", text="hi")
        else:
            await device.listen("start", mode="manual")
        await device.until("tts", state="stop")
        for _ in range(9):
            tts.release.release()
        if how in ("abort", "listen start"):
            await device.say("text", text="four")
        reply = await device.reply()  # the very next message belongs to it
        assert reply["text"] == ("Hello." if how == "wake" else "four")

    talk(scenario, tts=HeldTts())


def test_an_abort_before_the_first_sound_needs_no_tts_stop():
    async def scenario(cloud, device):
        await device.say("text", text="one")
        await device.until("stt")
        await cloud.config.tts.begun.get()
        await device.say("abort")
        await cloud.wait_for("interrupted")
        cloud.config.tts.release.release()
        cloud.config.tts.release.release()
        await device.say("text", text="two")
        assert (await device.message())["type"] == "stt"
        assert (await device.reply())["text"] == "two"

    talk(scenario, tts=HeldTts())


@pytest.mark.parametrize("mode", ["auto", "realtime"])
def test_an_abort_while_the_recogniser_works_forgets_what_was_said(mode):
    asr = HeldAsr(["one", "two"])

    async def scenario(cloud, device):
        await device.listen("start", mode=mode)
        await device.speak()
        await asr.begun.wait()
        await device.say("abort")
        await asr.cancelled.wait()
        asr.release.set()
        if mode == "auto":
            await device.listen("start", mode=mode)
        await device.speak()
        assert (await device.reply())["stt"] == "one"
        assert len(cloud.seen("transcript")) == 1

    talk(scenario, asr=asr)


def test_a_turn_that_was_over_just_before_an_abort_is_aborted_too():
    class Outlet:
        said = []

        def post(self, output):
            self.said.append(output.kind)

    class Rounds:
        def downlink(self):
            return {}

        def build(self, template, report, armed=True):
            self.shadow = FakeRound(template)
            self.over = lambda: report(self.shadow, TurnOver(Words("hello")))
            return self.shadow

    class FakeRound:
        ears_open = True
        cancelled = False

        def __init__(self, template):
            self.template = template
            self.output = asyncio.Queue()

        def answer(self, subject):
            pass

        def cancel(self):
            self.cancelled = True

        async def aclose(self):
            pass

    async def scenario():
        rounds = Rounds()
        session = Session(Outlet(), rounds, VanlingOptions(), lambda *_, **__: None)
        session.on_frame(frames.Hello(1, "websocket", "pcm", 16000, 60, False, {}))
        session.on_frame(frames.ListenStart("auto", {}))
        shadow = rounds.shadow
        rounds.over()  # reported, but the loop has not come to it
        session.on_frame(frames.Abort(None, {}))
        assert Outlet.said == ["hello", "stt"]
        assert shadow.cancelled
        assert session.phase == "listening"
        await session.aclose()

    asyncio.run(scenario())


def test_what_an_older_epoch_still_says_is_dropped():
    class Everything:
        said = []

        def post(self, output):
            self.said.append(output)

        async def send(self, sound):
            self.said.append(sound)

    async def scenario():
        session = SimpleNamespace(epoch=3)
        outlet = EpochOutlet(session, Everything())
        outlet.post("now")
        await outlet.send("now too")
        session.epoch = 4
        outlet.post("late")
        await outlet.send("late too")
        assert Everything.said == ["now", "now too"]

    asyncio.run(scenario())


def test_an_abort_with_nothing_to_abort_is_harmless():
    async def scenario(cloud, device):
        await device.say("abort")
        await device.listen("start", mode="auto")
        await device.say("abort")
        await device.speak()
        assert (await device.reply())["stt"] == "hello there"

    talk(scenario)


def test_realtime_listens_on_after_an_abort():
    async def scenario(cloud, device):
        await device.listen("start", mode="realtime")
        await device.speak()
        await cloud.config.tts.begun.get()
        await device.say("abort")
        await device.speak()
        cloud.config.tts.release.release()
        cloud.config.tts.release.release()
        await device.until("stt", text="two")
        assert (await device.reply())["text"] == "two"

    talk(scenario, asr=ScriptedAsr(["one", "two"]), tts=HeldTts())


def test_listen_start_again_forgets_what_was_said_before_it():
    asr = KeepingAsr(["hello there"])

    async def scenario(cloud, device):
        await device.listen("start", mode="manual")
        await device.speak(voice(600))
        await device.listen("start", mode="manual")
        await device.speak(voice(300))
        await device.listen("stop")
        await device.reply()
        assert asr.ms == [300]

    talk(scenario, asr=asr)


# Empty input


def prompts(scenario, kind, strengths, **settings):
    """Run, and check which empty inputs were seen."""

    async def main(cloud, device):
        await scenario(cloud, device)
        seen = [(fields["kind"], fields["strength"]) for fields in cloud.seen("empty_input")]
        assert seen == [(kind, strength) for strength in strengths]

    talk(main, **{"limits": CLOCKS, **settings})


def test_manual_without_speech_is_prompted_at_every_press():
    async def scenario(cloud, device):
        texts = set()
        for _ in range(5):
            await device.listen("start", mode="manual")
            await device.speak(silence(300))
            await device.listen("stop")
            reply = await device.reply()
            assert reply["stt"] is None
            texts.add(reply["text"])
        assert texts != {""}

    prompts(scenario, "manual", [1] * 5)


@pytest.mark.parametrize("wake, kind", [(True, "wake"), (False, "silence")])
def test_silence_is_prompted_three_times_each_time_otherwise_then_never(wake, kind):
    async def scenario(cloud, device):
        if wake:
            await device.listen("detect", text="hi")
            await device.reply()
        texts = []
        for _ in range(3):
            await device.listen("start", mode="auto")
            texts.append((await device.reply())["text"])
        assert len(set(texts)) == 3
        await device.listen("start", mode="auto")
        await cloud.wait_for("empty_input", 4)
        await device.speak()  # idle, but not deaf
        assert (await device.reply())["stt"] == "hello there"

    prompts(scenario, kind, [1, 2, 3, 0])


def test_audio_in_which_nobody_speaks_is_silence_too():
    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.speak(silence(1200))
        await device.reply()

    limits = replace(QUICK, no_audio=30, no_speech_ms=1000)
    prompts(scenario, "silence", [1], limits=limits)


def test_a_click_is_no_speech():
    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.speak(silence(300) + voice(20) + silence(300))
        await device.reply()

    prompts(scenario, "silence", [1])


def test_while_the_cloud_speaks_silence_is_not_counted():
    async def scenario(cloud, device):
        tts = cloud.config.tts
        await device.listen("start", mode="realtime")
        await device.speak()
        await tts.begun.get()
        await device.speak(silence(600))
        await asyncio.sleep(0.2)
        tts.release.release()
        await device.reply()
        assert len(cloud.seen("utterance")) == 1
        await cloud.wait_for("utterance", 2)

    talk(scenario, tts=HeldTts(), limits=replace(CLOCKS, no_speech_ms=300))


def test_unclear_speech_is_asked_again_then_helped_then_the_conversation_ends():
    async def scenario(cloud, device):
        texts = []
        for _ in range(3):
            await device.listen("start", mode="auto")
            await device.speak()
            reply = await device.reply()
            assert reply["stt"] is None
            texts.append(reply["text"])
        assert "again" in texts[0]
        assert "example" in texts[1]
        assert "Goodbye" in texts[2]
        assert await device.closed() == 1000

    prompts(scenario, "auto_spoke", [1, 2, 3], asr=ScriptedAsr(["", "...", "uh"]))


@pytest.mark.parametrize("spoken", [True, False])
def test_real_input_resets_the_count(spoken):
    async def scenario(cloud, device):
        for _ in range(2):
            await device.listen("start", mode="auto")
            await device.reply()
        if spoken:
            await device.listen("start", mode="auto")
            await device.speak()
        else:
            await device.say("text", text="here I am")
        await device.reply()
        await device.listen("start", mode="auto")
        await device.reply()

    prompts(scenario, "silence", [1, 2, 1])


def test_silence_after_a_reply_in_realtime_is_no_empty_input_to_talk_about():
    async def scenario(cloud, device):
        await device.listen("start", mode="realtime")
        await device.speak()
        await device.reply()
        await cloud.wait_for("empty_input")
        await device.speak()
        assert (await device.reply())["stt"] == "hello there"

    prompts(scenario, "continuing", [0])


@pytest.mark.parametrize("mode", ["auto", "realtime"])
def test_silence_that_gets_no_prompt_goes_idle_by_the_clock(mode):
    async def scenario(cloud, device):
        if mode == "realtime":
            await device.listen("start", mode=mode)
            await device.speak()
            await device.reply()
        else:
            for _ in range(3):
                await device.listen("start", mode=mode)
                await device.reply()
            await device.listen("start", mode=mode)
        assert await device.closed() == 1000
        assert cloud.seen("session_close")[0]["reason"] == "inactivity"

    talk(scenario, limits=SOON)


def test_listen_stop_in_auto_ends_what_was_said_and_silence_gets_no_prompt():
    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.listen("stop")
        await cloud.wait_for("utterance")
        await device.listen("start", mode="auto")
        await device.speak(voice(600))
        await device.listen("stop")
        assert (await device.reply())["stt"] == "hello there"
        assert not cloud.seen("empty_input")

    talk(scenario)


# Time and failure


def test_without_activity_the_connection_is_closed():
    async def scenario(cloud, device):
        loop = asyncio.get_running_loop()
        await device.say("text", text="hi")
        await device.reply()
        begun = loop.time()
        assert await device.closed() == 1000
        assert loop.time() - begun >= 0.35
        assert cloud.seen("session_close")[0]["reason"] == "inactivity"

    talk(scenario, limits=SOON)


def test_a_device_that_sends_nothing_but_silence_goes_idle_by_the_clock():
    async def scenario(cloud, device):
        await device.listen("start", mode="manual")

        async def hush():
            while not device.socket.closed:
                await device.speak(silence(60))
                await asyncio.sleep(0.02)

        sending = asyncio.create_task(hush())
        assert await device.closed() == 1000
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    talk(scenario, limits=SOON)


def test_a_long_reply_is_activity():
    async def scenario(cloud, device):
        await device.say("text", text="hi")
        await cloud.config.tts.begun.get()
        await asyncio.sleep(0.5)  # longer than the time without activity
        cloud.config.tts.release.release()
        assert (await device.reply())["text"] == "hi"

    talk(scenario, limits=SOON, tts=HeldTts())


def test_audio_is_paced_and_never_more_than_one_frame_ahead():
    async def scenario(cloud, device):
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await device.say("text", text="0123456789" * 4)  # a second of tone
        frames_heard = 0
        while True:
            item = await device.receive()
            # Ten times as fast: 6 ms for each frame of 60 ms, and `tts stop` after the last.
            assert loop.time() - begun >= frames_heard * 0.006
            if isinstance(item, bytes):
                frames_heard += 1
            elif item.get("state") == "stop":
                break
        assert frames_heard == 17

    talk(scenario, limits=replace(QUICK, pace=10))


@pytest.mark.parametrize("error", [ProviderBusy("full"), RuntimeError("broken")])
def test_a_failing_recogniser_is_an_alert_and_an_empty_answer(error):
    async def scenario(cloud, device):
        await device.listen("start", mode="auto")
        await device.speak()
        alert = await device.message()
        assert (alert["type"], alert["status"]) == ("alert", "error")
        assert (await device.reply())["sentences"] == []
        await device.listen("start", mode="auto")
        await device.speak()
        assert (await device.reply())["stt"] == "hello there"

    talk(scenario, asr=FailsOnce(error))


def test_a_failing_voice_ends_the_answer_that_has_begun():
    class Hoarse(HeldTts):
        async def synthesise(self, sentence):
            if sentence == "two.":
                raise RuntimeError("no voice")
            return tone(sentence)

    async def scenario(cloud, device):
        await device.say("text", text="one. two. three")
        await device.until("alert")
        while not isinstance(last := await device.receive(), dict) or last["type"] != "tts":
            pass
        await device.say("text", text="four")
        assert (await device.reply())["text"] == "four"

    talk(scenario, tts=Hoarse())


def test_the_cloud_stops_in_the_middle_of_a_reply():
    async def main(cloud):
        async with connect(cloud) as device:
            await greet(device)
            await device.say("text", text="hi")
            await cloud.config.tts.begun.get()
            await asyncio.gather(cloud.stop(), device.until_closed())

    run(main, tts=HeldTts())


def test_two_devices_talk_at_the_same_time():
    async def scenario(cloud):
        async with connect(cloud) as one, connect(cloud) as two:
            ids = {(await greet(device))["session_id"] for device in (one, two)}
            assert len(ids) == 2
            await one.say("text", text="first")
            await two.say("text", text="second")
            assert (await two.reply())["text"] == "second"
            assert (await one.reply())["text"] == "first"

    run(scenario)


def test_a_device_that_vanishes_leaves_nothing_behind():
    async def scenario(cloud):
        async with connect(cloud) as device:
            await greet(device)
            await device.listen("start", mode="realtime")
            await device.speak(SPOKEN)
            await device.until("tts", state="start")
            device.socket._response.connection.transport.abort()
            await cloud.wait_for("disconnected")

    run(scenario)
