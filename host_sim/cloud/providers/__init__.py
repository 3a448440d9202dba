"""Providers by the names of the command line; a library is imported when it is asked for."""

from ..config import ConfigError
from .agents import EchoAgent, RulesAgent
from .scripted import ScriptedAsr


def build_asr(choice):
    """Return the ASR for "scripted:FILE" or "pocketsphinx"; an ASR object is returned unchanged.

    Raises ConfigError.
    """
    if not isinstance(choice, str):
        return choice
    name, _, argument = choice.partition(":")
    if name == "scripted" and argument:
        return ScriptedAsr.from_file(argument)
    if choice == "pocketsphinx":
        from .sphinx import PocketsphinxAsr

        return PocketsphinxAsr()
    raise ConfigError(f"ASR {choice!r} is not known; choose scripted:FILE or pocketsphinx")


def build_agent(choice):
    """Return the agent for "echo" or "rules"; an agent object is returned unchanged."""
    if not isinstance(choice, str):
        return choice
    if choice == "echo":
        return EchoAgent()
    if choice == "rules":
        return RulesAgent()
    raise ConfigError(f"agent {choice!r} is not known; choose echo or rules")


def build_tts(choice):
    """Return the TTS for "tone" or "espeak"; a TTS object is returned unchanged."""
    if not isinstance(choice, str):
        return choice
    if choice == "tone":
        from .tone import ToneTts

        return ToneTts()
    if choice == "espeak":
        from .espeak import EspeakTts

        return EspeakTts()
    if choice == "none":
        return None
    raise ConfigError(f"TTS {choice!r} is not known; choose tone, espeak or none")
