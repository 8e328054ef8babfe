"""What the one who starts the nights is told of the channels of alerts."""

from __future__ import annotations

from local.alert_channels import in_words


def test_the_channels_that_are_set_are_named_without_their_addresses() -> None:
    set_ones = {
        "NIGHTLY_ALERT_SMTP": "smtp://ana:secret@host/",
        "NIGHTLY_ALERT_SLACK": " ",
        "NIGHTLY_ALERT_WEBHOOK": "x",
    }
    assert in_words(set_ones) == "told by smtp and webhook (./nightly alerts test)"


def test_where_none_is_set_it_says_that_nobody_is_told_and_what_to_set() -> None:
    told = in_words({})
    assert told.startswith("in the database and nowhere else; NIGHTLY_ALERT_SMTP, NIGHTLY_ALERT_SLACK, ")
