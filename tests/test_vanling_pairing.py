"""The vanling cloud's pairing endpoint: address, token, activation code, time."""

import time

import aiohttp
import pytest
import trustme
from test_vanling_harness import Device, connect, greet, run

from host_sim.cloud.vanling.options import VanlingOptions

MAC = "02:00:00:00:00:0a"
BODY = {
    "version": 2,
    "mac_address": MAC,
    "uuid": "5b1f5dd4-8e23-4a2c-9a0b-000000000001",
    "chip_model_name": "esp32s3",
    "application": {"name": "parley", "version": "1.2.3"},
    "board": {"type": "reference", "name": "reference", "mac": MAC},
}


async def pair(url, device_id=MAC, **options):
    headers = {
        "Device-Id": device_id,
        "Client-Id": BODY["uuid"],
        "User-Agent": "reference/1.2.3",
        "Accept-Language": "en-US",
    }
    options = {"json": BODY, "headers": headers, **options}
    async with aiohttp.ClientSession() as client, client.post(url, **options) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


def test_a_device_gets_address_token_time_and_can_connect_with_them():
    async def scenario(cloud):
        answer = await pair(cloud.ota_url)
        websocket = answer["websocket"]
        assert websocket == {"url": cloud.url, "token": "hush", "version": 1}
        assert "activation" not in answer
        assert abs(answer["server_time"]["timestamp"] / 1000 - time.time()) < 5
        assert answer["server_time"]["timezone_offset"] == time.localtime().tm_gmtoff // 60
        assert answer["firmware"] == {"version": "1.2.3", "url": ""}
        async with connect(cloud, headers={"Authorization": "Bearer " + websocket["token"]}) as it:
            await greet(it)

    run(scenario, token="hush")


def test_a_fresh_device_gets_one_code_for_so_many_polls():
    async def scenario(cloud):
        answers = [await pair(cloud.ota_url) for _ in range(4)]
        codes = [answer.get("activation", {}).get("code") for answer in answers]
        assert codes[0] == codes[1]
        assert codes[2:] == [None, None]
        assert len(codes[0]) == 6
        assert codes[0].isdecimal()
        assert codes[0] in answers[0]["activation"]["message"]
        assert answers[0]["activation"]["challenge"]
        assert answers[0]["activation"]["timeout_ms"] > 0

    run(scenario, options=VanlingOptions(activate_after=2))


def test_the_code_stays_until_the_device_is_accepted():
    async def scenario(cloud):
        for _ in range(5):
            assert "activation" in await pair(cloud.ota_url)
        cloud.pairing.accept(MAC)
        assert "activation" not in await pair(cloud.ota_url)
        assert "activation" in await pair(cloud.ota_url, "02:00:00:00:00:0b")
        assert len(cloud.seen("pairing")) == 7

    run(scenario, options=VanlingOptions(activate_after=None))


@pytest.mark.parametrize(
    "options, status",
    [
        ({"headers": {}}, 400),
        ({"json": None, "data": b"not json"}, 400),
        ({"json": None, "data": b"[]"}, 400),
        ({"json": None, "data": b" " * 70_000}, 413),
    ],
)
def test_what_is_no_pairing_request_is_refused(options, status):
    async def scenario(cloud):
        headers = {"Device-Id": MAC}
        options_here = {"json": BODY, "headers": headers, **options}
        async with (
            aiohttp.ClientSession() as client,
            client.post(cloud.ota_url, **options_here) as answer,
        ):
            assert answer.status == status

    run(scenario)


def test_a_body_with_odd_parts_is_served():
    async def scenario(cloud):
        answer = await pair(cloud.ota_url, json={"application": 7})
        assert answer["firmware"]["version"] == "0.0.0"

    run(scenario)


def test_the_address_is_the_one_that_the_device_used_and_both_dialects_pair():
    async def scenario(cloud):
        port = cloud.ota_url.split(":")[2].split("/")[0]
        answer = await pair(f"http://localhost:{port}/xiaozhi/ota")
        url = answer["websocket"]["url"]
        assert url == f"ws://localhost:{port}/xiaozhi/v1/"
        async with aiohttp.ClientSession() as client, client.ws_connect(url) as socket:
            await greet(Device(socket))

    run(scenario, protocol="both")


def test_over_tls_the_address_is_wss(tmp_path):
    authority = trustme.CA()
    cert = authority.issue_cert("127.0.0.1")
    key, chain = tmp_path / "key.pem", tmp_path / "cert.pem"
    cert.private_key_pem.write_to_path(str(key))
    for blob in cert.cert_chain_pems:
        blob.write_to_path(str(chain), append=True)

    async def scenario(cloud):
        assert cloud.ota_url.startswith("https://")
        answer = await pair(cloud.ota_url, ssl=False)
        assert answer["websocket"]["url"] == cloud.url
        assert cloud.url.startswith("wss://")

    run(scenario, cert=str(chain), key=str(key))
