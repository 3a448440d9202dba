"""The test cloud: the far end of both dialects, with real ears, a small mind and a voice.

    async with Cloud(Config(asr="pocketsphinx"), on_event=print) as cloud:
        ...  # a device connects to cloud.url

ai-session-ws/1 is spoken by `device_session`, xiaozhi by `vanling`. `speak` in `providers.espeak`
gives persons in tests and demonstrations a voice.
"""

from .config import Config, ConfigError, Limits
from .server import Cloud
from .vanling.options import VanlingLimits, VanlingOptions

__all__ = ["Cloud", "Config", "ConfigError", "Limits", "VanlingLimits", "VanlingOptions"]
