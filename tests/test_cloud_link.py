"""The test cloud's writer: what was not begun can be taken back, what waits is bounded."""

import asyncio

from host_sim.cloud import Limits
from host_sim.cloud.link import Link


class FakeSocket:
    """Takes one frame at each release."""

    def __init__(self):
        self.taken = []
        self.release = asyncio.Semaphore(0)

    async def send_str(self, data):
        self.taken.append(data)
        await self.release.acquire()

    send_bytes = send_str

    async def close(self, code):
        pass


class FakeTransport:
    aborted = False

    def abort(self):
        self.aborted = True

    def get_write_buffer_size(self):
        return 0


def with_link(scenario):
    async def main():
        socket, transport = FakeSocket(), FakeTransport()
        link = Link(socket, transport, Limits(close=0.05))
        try:
            async with asyncio.timeout(10):
                await scenario(link, socket, transport)
        finally:
            await link.finish(1000)

    asyncio.run(main())


def test_a_cancelled_send_is_taken_back_and_the_rest_keeps_its_order():
    async def scenario(link, socket, transport):
        began = []
        first = asyncio.create_task(link.send(b"first"))
        second = asyncio.create_task(link.send(b"second", lambda: began.append("second")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert socket.taken == [b"first"]
        second.cancel()
        link.post({"type": "ack"})
        socket.release.release()
        await first
        last = asyncio.create_task(link.send(b"last"))
        socket.release.release()
        socket.release.release()
        await last
        assert socket.taken == [b"first", '{"type":"ack"}', b"last"]
        assert began == []

    with_link(scenario)


def test_a_peer_that_provokes_answers_and_reads_none_is_cut_off():
    async def scenario(link, socket, transport):
        posted = 0
        while not transport.aborted and posted < 10_000:
            link.post({"type": "error"})
            posted += 1
        assert 100 < posted < 1000

    with_link(scenario)


def test_finishing_does_not_wait_for_a_peer_that_reads_nothing():
    async def scenario(link, socket, transport):
        link.post({"type": "session_close"})
        link.post({"type": "never read"})
        await link.finish(1000)
        assert transport.aborted
        assert link.writer.done()

    with_link(scenario)
