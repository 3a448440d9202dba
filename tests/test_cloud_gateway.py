"""The test cloud's door: the first frame, the token, TLS, one session for each client_id."""

import asyncio
import json
import ssl

import aiohttp
import pytest
import trustme
from test_cloud_harness import START, connect, run, start_session

from host_sim.cloud import ConfigError, Limits


def changed(**fields):
    """session_start with other fields; None removes one."""
    message = {**START, **fields}
    return json.dumps({name: value for name, value in message.items() if value is not None})


def media(**fields):
    return {**START["input_audio"], **fields}


@pytest.mark.parametrize(
    "first, code",
    [
        ("not json", "invalid_first_frame"),
        ("[]", "invalid_first_frame"),
        ("null", "invalid_first_frame"),
        ("[" * 100_000, "invalid_first_frame"),
        ('{"type": "wake_start"}', "invalid_first_frame"),
        ('{"type": ["session_start"]}', "invalid_first_frame"),
        (bytes(640), "invalid_first_frame"),
        (changed(protocol_version="ai-session-ws/2"), "unsupported_protocol_version"),
        (changed(protocol_version=None), "unsupported_protocol_version"),
        (changed(client_id=""), "invalid_client_id"),
        (changed(client_id=None), "invalid_client_id"),
        (changed(client_id=7), "invalid_client_id"),
        (changed(client_id="x" * 129), "invalid_client_id"),
        (changed(client_id="two\nlines"), "invalid_client_id"),
        (changed(input_audio=None), "unsupported_media"),
        (changed(input_audio=media(sample_rate=24000)), "unsupported_media"),
        (changed(input_audio=media(sample_rate="16000")), "unsupported_media"),
        (changed(output_audio=media(channels=True)), "unsupported_media"),
        (changed(output_audio=media(format="opus")), "unsupported_media"),
    ],
)
def test_a_bad_first_frame_is_named_and_closed(first, code):
    async def scenario(cloud):
        async with connect(cloud) as device:
            if isinstance(first, bytes):
                await device.socket.send_bytes(first)
            else:
                await device.socket.send_str(first)
            error = await device.message()
            assert (error["type"], error["code"], error["scope"]) == ("error", code, "connection")
            assert "session_id" not in error
            closed = await device.message()
            assert closed == {"type": "session_close", "reason": "protocol_error"}
            assert await device.closed() == aiohttp.WSCloseCode.POLICY_VIOLATION

    run(scenario)


def test_a_device_that_says_nothing_is_closed():
    async def scenario(cloud):
        async with connect(cloud) as device:
            assert (await device.message())["code"] == "invalid_first_frame"
            assert (await device.message())["type"] == "session_close"
            await device.closed()

    run(scenario, limits=Limits(first_frame=0.05))


def test_a_good_first_frame_gets_a_session_with_the_media_it_offered():
    async def scenario(cloud):
        async with connect(cloud) as device:
            ack = await start_session(device)
            assert ack["accepted"] is True
            assert ack["session_id"]
            assert ack["input_audio"] == START["input_audio"]
            assert ack["output_audio"] == START["output_audio"]

    run(scenario)


def test_fields_may_stand_inside_data_and_the_top_level_wins():
    async def scenario(cloud):
        async with connect(cloud) as device:
            data = {**START, "client_id": 0}
            del data["type"]
            await device.say("session_start", client_id="outside", data=data, unknown=[1])
            assert (await device.message())["type"] == "session_start_ack"
        assert cloud.seen("session_start")[0]["client_id"] == "outside"

    run(scenario)


def test_the_second_connection_of_a_client_replaces_the_first():
    async def scenario(cloud):
        async with connect(cloud) as first, connect(cloud) as second, connect(cloud) as other:
            old = await start_session(first)
            await start_session(other, client_id="somebody else")
            new = await start_session(second)
            assert new["session_id"] != old["session_id"]
            closed = await first.message()
            assert closed["type"] == "session_close"
            assert closed["reason"] == "replaced"
            assert closed["session_id"] == old["session_id"]
            await first.closed()
            # Neither the other client nor the new session has noticed.
            for device in (second, other):
                await device.speak()
                assert (await device.turn())["text"] == "hello there"
            async with connect(cloud) as third:
                await start_session(third)
                assert (await second.message())["reason"] == "replaced"

    run(scenario)


def test_more_sessions_than_allowed_are_refused_until_one_ends():
    async def scenario(cloud):
        async with connect(cloud) as first, connect(cloud) as second:
            ack = await start_session(first)
            await second.say(**{**START, "client_id": "two"})
            error = await second.message()
            assert (error["code"], error["retryable"]) == ("session_create_failed", True)
            await first.say("session_close", session_id=ack["session_id"], reason="user_exit")
            await first.until("session_close")
            await first.closed()
        async with connect(cloud) as third:
            await start_session(third, client_id="three")

    run(scenario, limits=Limits(sessions=1))


@pytest.mark.parametrize(
    "header", [None, "Bearer wrong", "Bearer ", "secret-token", "Bearer \xff"]
)
def test_without_the_token_the_handshake_is_refused(header, caplog):
    caplog.set_level("INFO")

    async def scenario(cloud):
        headers = {} if header is None else {"Authorization": header}
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with connect(cloud, headers=headers):
                pass
        assert refused.value.status == 401

    run(scenario, token="secret-token")
    assert "secret-token" not in caplog.text


def test_with_the_token_the_session_begins_and_no_log_line_holds_it(caplog):
    caplog.set_level("INFO")

    async def scenario(cloud):
        headers = {"Authorization": "Bearer secret-token"}
        async with connect(cloud, headers=headers) as device:
            await start_session(device)

    run(scenario, token="secret-token")
    assert "session_start" in caplog.text
    assert "secret-token" not in caplog.text


def test_tls(tmp_path):
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    key.write_bytes(certificate.private_key_pem.bytes())
    trust = ssl.create_default_context()
    authority.configure_trust(trust)

    async def scenario(cloud):
        assert cloud.url.startswith("wss://127.0.0.1:")
        async with connect(cloud, ssl=trust) as device:
            await start_session(device)
            await device.speak()
            assert (await device.turn())["text"] == "hello there"

    run(scenario, cert=str(chain), key=str(key))


@pytest.mark.parametrize(
    "settings, part",
    [
        ({"cert": "missing.pem"}, "both"),
        ({"cert": "missing.pem", "key": "missing.pem"}, "missing.pem"),
        ({"asr": "whisper"}, "whisper"),
        ({"asr": "scripted:missing.json"}, "missing.json"),
        ({"agent": "oracle"}, "oracle"),
        ({"tts": "choir"}, "choir"),
        ({"host": "256.1.1.1"}, "256.1.1.1"),
    ],
)
def test_what_the_person_set_wrong_is_named_in_one_line(settings, part):
    async def scenario(cloud):
        raise AssertionError("the cloud must not start")

    with pytest.raises(ConfigError) as error:
        run(scenario, **settings)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_stopping_the_cloud_ends_its_sessions_and_who_has_none():
    async def scenario(cloud):
        async with connect(cloud) as device, connect(cloud) as silent:
            await cloud.wait_for("connected", 2)
            await start_session(device)
            stop = asyncio.create_task(cloud.stop())
            for each in (device, silent):
                assert await each.closed() == aiohttp.WSCloseCode.GOING_AWAY
            await stop

    run(scenario)
