"""The name that was probably meant: typing errors count with swaps, and words of the field stand for keys."""

from __future__ import annotations

import pytest

from tcpsbed.nearest import NOTES, SYNONYMS, close_match, distance, nearest

TRANSPORTS = ("udp", "dpm", "dpm-q", "tcp", "rtp", "gcc", "quic", "kernel-tcp")


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        ("dmp", "dpm", 1),
        ("", "abc", 3),
        ("abc", "", 3),
        ("delay", "delay", 0),
        ("dlay", "delay", 1),
        ("dealy", "delay", 1),
        ("ca", "abc", 3),  # each letter is touched once
        ("kitten", "sitting", 3),
    ],
)
def test_neighbours_that_are_swapped_count_once(one: str, other: str, far: int) -> None:
    assert distance(one, other) == distance(other, one) == far


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("dmp", TRANSPORTS, "dpm"),
        ("upd", TRANSPORTS, "udp"),
        ("DPM-Q", TRANSPORTS, "dpm-q"),
        ("kernel_tcp", TRANSPORTS, "kernel-tcp"),
        ("xyz", TRANSPORTS, None),
        ("kern", TRANSPORTS, "kernel-tcp"),
        ("latency", ("rate", "delay", "loss"), "delay"),
        ("rtt", ("rate", "delay", "loss"), "delay"),
        ("bandwidth", ("rate", "delay", "loss"), "rate"),
        ("bw", ("rate", "delay", "loss"), "rate"),
        ("plr", ("rate", "delay", "loss"), "loss"),
        ("fps", ("rate", "sample"), "rate"),
        ("buffer", ("queue", "rate"), "queue"),
        ("time", ("duration", "seed"), "duration"),
        ("seeds", ("duration", "seed"), "seed"),
        ("--latency", ("--rate", "--delay"), "--delay"),
        ("packetloss", ("rate", "loss"), "loss"),
        ("freq", ("rate", "sample"), "rate"),
        ("host", ("kind", "node"), "node"),
        ("lteee", ("lan", "lte", "wifi"), "lte"),
        ("a", ("b", "c"), None),
        ("", ("b", "c"), None),
    ],
)
def test_the_nearest_name(word: str, known: tuple[str, ...], meant: str | None) -> None:
    assert nearest(word, known) == meant


def test_a_message_lists_the_names_and_the_one_that_was_meant() -> None:
    assert close_match("dmp", TRANSPORTS[:2]) == "udp, dpm (did you mean dpm?)"
    assert close_match("xyz", TRANSPORTS[:2]) == "udp, dpm"
    assert close_match("udp", []) == "none"
    assert close_match("--sed", ["--set", "--seed"]) == "--set, --seed (did you mean --set or --seed?)"
    half = close_match("rtt", ["delay", "rate"])
    assert half == "delay, rate (did you mean delay? it is one way: half of the RTT)"


def test_no_word_stands_for_itself_and_every_note_belongs_to_a_word() -> None:
    words = {name: said.split() for name, said in SYNONYMS.items()}
    assert not [name for name, said in words.items() if name in said or len(set(said)) < len(said)]
    assert set(NOTES) <= {word for said in words.values() for word in said}
