"""The test cloud: the far end of ai-session-ws/1, with real ears, a small mind and a voice.

    async with Cloud(Config(asr="pocketsphinx"), on_event=print) as cloud:
        ...  # a device connects to cloud.url

`speak` in `providers.espeak` gives persons in tests and demonstrations a voice.
"""

from .config import Config, ConfigError, Limits
from .server import Cloud

__all__ = ["Cloud", "Config", "ConfigError", "Limits"]
