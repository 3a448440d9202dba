"""App: the composition root. It builds the parts, keeps them going, and gives the buttons meaning.

`App(settings, board).run()` never ends by itself; `stop()` ends the conversation and then `run()`.
"""

import asyncio
import gc

import machine
import neopixel
from micropython import const
from pcmring import Ring
from pushbutton import DOUBLE, VERY_LONG, Button, Buttons
from waiting import Waiter

from parley import audio, errors, log, states, trace, ui
from parley.online import Online
from parley.player import Player
from parley.protocol import events
from parley.screen import Screen
from parley.session import Session
from parley.speech import Speech
from parley.websocket_task import WebSocketTask

_UPLINK_FRAME = const(640)  # bytes of a microphone block
_UPLINK = const(32000)  # bytes, 1 s: the oldest block goes when the network takes less than we say
_DOWNLINK = const(32768)  # bytes, 1 s: the rest waits in TCP
_VOLUME_KEYS = ("volume_up", "volume_down")
_RESTART_MS = const(250)  # before a part that failed is started again


class App:
    """`board`: pins by part, as in the files of `board/`; `settings`: a `settings.Settings`.

    `path`: where changed settings are kept; None: they are not.
    """

    def __init__(self, settings, board, path=None):
        self._settings = settings
        self._path = path
        self._unsaved = False
        self._restarting = False
        self._stopping = Waiter()
        self._line = None
        # the largest blocks first, while memory is whole
        gc.collect()
        uplink = Ring(_UPLINK, _UPLINK_FRAME)
        downlink = Ring(_DOWNLINK)
        self.rings = {"uplink": uplink, "downlink": downlink}
        dialect = _dialect(settings.protocol)
        if not settings.device_id:
            settings.device_id = ":".join(["%02x" % byte for byte in machine.unique_id()])
        self._audio = audio.Audio(settings, board)
        self._online = Online(settings, path, self._show)
        self._screen = Screen(board, self._report, self._beside("font.bin"))
        self._led = None
        if board["led"] is not None:
            pin = machine.Pin(board["led"], machine.Pin.OUT)
            self._led = neopixel.NeoPixel(pin, board.get("leds", 1))

        sink = (self._packets if dialect.FRAMED else self._samples)(uplink, downlink)
        output, microphone = self._audio.output, self._audio.input
        self.player = Player(output, downlink, audio.RATE, settings.prebuffer_ms, self.link.room)
        self.player.set_volume(settings.volume)
        self.link.on_data = self.player.data
        self.speech = Speech(
            microphone, uplink, audio.RATE, audio.MIC_BLOCK, settings, self.link.flush
        )
        self.session = Session(
            dialect, self.link, self.speech, self.player, sink, settings, self._connect, self._show
        )
        if dialect.FRAMED:
            sink.on_text = self.session.received
        self._admission = None
        if dialect.PAIRS:
            self._ask_for_admission(board["name"])
        elif not settings.client_id:
            settings.client_id = "parley-" + machine.unique_id().hex()
        if dialect.TOOLS:
            self._offer_tools(board["name"])
        for problem in settings.problems:
            log.warn(problem)
            self.session.notice = problem
        buttons = [Button("boot", self._button(board["boot"]), DOUBLE | VERY_LONG)]
        self._has_key = board["key"] is not None
        if self._has_key:
            buttons.append(Button("key", self._button(board["key"])))
        self._volume = None
        keys = [name for name in _VOLUME_KEYS if name in board]
        if keys:
            from parley.volume import Volume

            self._volume = Volume(settings, self.set_volume, self._show)
            buttons.extend([Button(name, self._button(board[name])) for name in keys])
        self._buttons = Buttons(buttons, self.gesture)

    def _samples(self, uplink, downlink):
        """The link of a dialect with bare samples; return its sink."""
        from parley.samples import SampleSink, SampleSource

        self.link = WebSocketTask(SampleSource(uplink), self._settings)
        return SampleSink(downlink, audio.RATE)

    def _packets(self, uplink, downlink):
        """The link of a dialect with packets of a codec; return its sink."""
        from parley import codec
        from parley.packets import PacketSink, PacketSource

        settings = self._settings
        settings.codec = codec.offer(settings.codec)
        sink = PacketSink(downlink, audio.RATE, settings)
        self.link = WebSocketTask(PacketSource(uplink, settings), settings)
        self.link.closed_sink = sink.muted
        return sink

    def _beside(self, name):
        """A file in the folder of the settings."""
        return (self._path.rsplit("/", 1)[0] if self._path else "") + "/" + name

    def _ask_for_admission(self, name):
        """A server of this family may be named by a pairing server; the UUID is ours for ever."""
        from parley.kept import Kept

        settings = self._settings
        kept = Kept(self._beside("pairing.json"))
        settings.client_id = settings.client_id or kept.uuid
        if settings.ota_url:
            from parley import VERSION, pairing
            from parley.admission import Admission

            identity = pairing.Identity(
                settings.device_id, settings.client_id, "parley", name, "esp32s3", VERSION
            )
            self._admission = Admission(settings, identity, kept, self._online.trust, self._note)

    def _offer_tools(self, name):
        """The device as MCP server; boards and users add to `self.tools`."""
        from parley import VERSION, tools
        from parley.device import Device

        session = self.session
        self.tools = tools.Registry()
        device = Device(name, self._settings, session, self.set_volume, self.restart)
        tools.add_standard(self.tools, device)
        server = tools.Server(self.tools, name, VERSION, session.answer)
        session.on_tool = server.handle
        session.on_over = server.cancel
        session.on_reboot = self.restart

    async def run(self):
        """Run until `stop()`; a part that fails is reported and started again."""
        self._show()
        parts = [
            ("microphone", self.speech.run),
            ("speaker", self.player.run),
            ("session", self.session.run),
            ("buttons", self._buttons.run),
            ("wifi", self._online.run),
            ("screen", self._screen.run),
        ]
        if self._volume:
            parts.append(("volume", self._volume.run))
        tasks = [asyncio.create_task(self._keep(name, part)) for name, part in parts]
        if self._admission:
            tasks.append(asyncio.create_task(self._admission.run(self._resting)))
        try:
            await self._stopping.wait_ms(None)
            self.session.leave()
            self._online.close()
            while self.session.phase != states.OFF:
                await asyncio.sleep_ms(20)
        finally:
            for task in tasks:
                task.cancel()
            self._audio.deinit()
        self._save()
        if self._restarting:
            machine.reset()

    def set_volume(self, percent):
        """0 to 100, kept over a restart."""
        self._settings.set("volume", percent)
        self.player.set_volume(percent)
        self._unsaved = True

    def restart(self):
        """End the conversation, then restart the chip."""
        self._restarting = True
        self.stop()

    def stop(self):
        """End the conversation, then `run`."""
        self._stopping.set()

    def close(self):
        """Let go of socket, audio and LED at once, for when the tasks can do nothing any more."""
        self.link.abort()
        self._online.close()
        self._audio.deinit()
        if self._led:
            self._led.fill((0, 0, 0))
            self._led.write()

    async def _keep(self, name, part):
        while True:
            try:
                await part()
            except Exception as error:  # whatever a driver raises; the other parts go on
                self._report(name, error)
                self.session.failed(name)
                gc.collect()
            await asyncio.sleep_ms(_RESTART_MS)

    async def _set_up(self):
        """The set-up page, until it has stored something or is closed."""
        try:
            if await self._online.set_up():
                self.restart()
        except OSError as error:
            self._report("set-up", error)
        self._show()

    @staticmethod
    def _button(number):
        return machine.Pin(number, machine.Pin.IN, machine.Pin.PULL_UP)

    def gesture(self, name, gesture):
        """What a button's gesture means; `pushbutton` names them."""
        trace.emit("button", "name", name, "gesture", gesture)
        session = self.session
        if self._online.portal:
            if name == "boot" and gesture in ("long", "very_long"):
                self._online.close()
        elif name in _VOLUME_KEYS:
            if self._volume:
                self._volume.key(name, gesture)
        elif name == "boot" and gesture == "very_long":
            if session.phase == states.OFF and self._path:
                asyncio.create_task(self._set_up())
        elif name == "boot" and gesture == "long":
            connecting = session.phase in (states.CONNECTING, states.OPENING)
            if session.state in (states.IDLE, states.ERROR) and not connecting:
                session.wake()
            else:
                session.leave()
        elif name == "key" and session.mode.publish == events.HELD:
            if gesture == "down":
                session.press()
            elif gesture == "up":
                session.release()
        elif gesture == "click" and (name == "key" or not self._has_key):
            session.interrupt()

    def _connect(self):
        """Open the link; return `(code, detail)` when that can't even begin."""
        settings = self._settings
        problem = self._online.check()
        if not problem and self._admission:
            problem = self._admission.check()
        if problem:
            return problem
        headers = []
        if settings.token:
            token = settings.token
            headers.append(("Authorization", token if " " in token else "Bearer " + token))
        headers.extend(self.session.dialect.headers(settings))
        try:
            context = self._online.trust(settings.url)
        except (OSError, ValueError) as error:
            return errors.UNTRUSTED, "%s: %s" % (settings.ca_file, error)
        clock = self._online.clock() if context else None
        self.link.open(settings.url, headers, context, clock)
        return None

    def _resting(self):
        return self.session.phase == states.OFF

    def _note(self, text):
        self.session.notice = text
        self._show()

    def _save(self):
        """Keep what was changed; never in a conversation: flash stops the interpreter for long."""
        if self._unsaved and self._path and self.session.phase == states.OFF:
            self._unsaved = False
            try:
                self._settings.save(self._path)
            except OSError as error:
                self._report("settings", error)

    def _report(self, part, error):
        trace.emit(
            "error", "code", errors.PART, "scope", "device", "message", part + ": " + repr(error)
        )
        log.error(part, "failed:", repr(error))

    def _show(self):
        online = self._online
        portal = online.portal
        moved = self._volume and self._volume.line
        online.talking(self.session.phase != states.OFF)
        line = portal.line if portal else ui.line(self.session, online.notice())
        line = moved or line
        if line != self._line:
            self._line = line
            trace.emit("ui", "text", line)
            log.info("ui:", line)
            self._screen.show(line)
        try:
            if self._led:
                self._led.fill(ui.SET_UP if portal else ui.colour(self.session))
                self._led.write()
        except Exception as error:  # a screen that fails never ends a conversation
            self._report("led", error)
        if not moved:  # more presses may follow
            self._save()


def _dialect(name):
    """The module of the dialect; the other one takes no memory."""
    if name == "xiaozhi":
        from parley.protocol import xiaozhi

        return xiaozhi
    from parley.protocol import ai_session

    return ai_session
