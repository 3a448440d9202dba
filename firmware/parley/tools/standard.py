"""The tools of every board; what they do comes in from outside."""

from parley.tools.registry import Int


def add_standard(registry, device):
    """Add the standard tools (xiaozhi, 'The device as MCP server') to `registry`.

    `device`: an object with `status()` and `system_info()`, which return dicts,
    `set_volume(percent)`, and `reboot()`, which returns first and restarts a moment later, so that
    the answer gets out.
    """
    registry.add(
        "self.get_device_status",
        "Tells how the device is doing: loudness, network and the like. "
        "Ask before changing something relative to its present value.",
        device.status,
    )
    registry.add(
        "self.audio_speaker.set_volume",
        "Sets the loudness of the speaker in percent; 0 is silent.",
        device.set_volume,
        Int("volume", 0, 100),
    )
    registry.add(
        "self.reboot", "Restarts the device; the conversation ends.", device.reboot, user_only=True
    )
    registry.add(
        "self.get_system_info",
        "Tells chip, memory, firmware and network of the device.",
        device.system_info,
        user_only=True,
    )
