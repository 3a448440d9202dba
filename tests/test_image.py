"""Where MicroPython's files go, and that what is packed is what is found."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from board import schema
from host_sim.usage import UsageError
from host_sim.virtual_board import stand_in
from tools import image

MEGABYTE = 1 << 20


@pytest.mark.parametrize("megabytes", [4, 8, 16])
def test_newer_images_leave_the_rest_of_the_flash_to_the_files(megabytes):
    area = image.file_area(stand_in.image(), megabytes * MEGABYTE)
    assert area == (2 * MEGABYTE, (megabytes - 2) * MEGABYTE)


@pytest.mark.parametrize("megabytes", [4, 8, 16])
def test_older_images_say_where_the_files_are(megabytes):
    entry = (2 * MEGABYTE, (megabytes - 2) * MEGABYTE)
    assert image.file_area(stand_in.image(vfs=entry), 16 * MEGABYTE) == entry


def test_a_flash_without_room_for_files():
    with pytest.raises(UsageError, match="flash too small: MicroPython takes 2 MB"):
        image.file_area(stand_in.image(), 2 * MEGABYTE)
    with pytest.raises(UsageError, match="flash too small: the files do not fit in 64 KB"):
        image.filesystem({"big": bytes(100_000)}, 64 * 1024)


NAMES = st.text("abcdefgh_.", min_size=1, max_size=12).filter(lambda name: name.strip("."))
FOLDERS = st.sampled_from(["", "lib/", "parley/protocol/"])
FILES = st.dictionaries(
    st.builds(lambda folder, name: folder + name, FOLDERS, NAMES),
    st.binary(max_size=9000),
    max_size=12,
)


@settings(deadline=None, max_examples=40)
@given(FILES)
def test_every_file_is_found_again_with_few_reads(files):
    size = 14 * MEGABYTE
    disk = image.filesystem(files, size)
    reads = []

    def read(offset, length):
        reads.append(offset)
        return disk[offset : offset + length].ljust(length, b"\xff")

    for name, data in files.items():
        reads.clear()
        assert image.read_file(read, size, name) == data
        assert len(reads) == len(set(reads)) <= 16, "a board is read over a slow line"
    assert image.read_file(read, size, "not there") is None


@given(st.binary(max_size=8192))
def test_whatever_stands_in_the_flash_gives_no_file_and_no_failure(garbage):
    def read(offset, length):
        return garbage[offset : offset + length].ljust(length, b"\xff")

    assert image.read_file(read, 2 * MEGABYTE, "settings.json") is None


@pytest.mark.parametrize("psram", schema.PSRAM)
def test_the_pinned_images_are_of_one_release(psram):
    name, digest = image.IMAGES[psram]
    assert image.VERSION in name and name.startswith("ESP32_GENERIC_S3-")
    assert ("SPIRAM_OCT" in name) == (psram == "octal")
    assert len(bytes.fromhex(digest)) == 32


def test_a_pinned_image_that_was_fetched_by_hand_is_checked_too(tmp_path):
    path = tmp_path / image.IMAGES["quad"][0]
    path.write_bytes(stand_in.image())
    with pytest.raises(UsageError, match="FIRMWARE: .* has the wrong SHA-256; download it again"):
        image.read_image(path)
