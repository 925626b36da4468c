"""Zones know exactly the clock changes that the files of the tz database say."""

from __future__ import annotations

import zoneinfo
from pathlib import Path

import pytest
from tests.unit.timing import tzif
from tests.unit.timing.asking import at

from cronwright.timing.zones import zone, zone_names

FIRST, LAST = at("2000-01-01T00:00Z"), at("2041-01-01T00:00Z")


def test_every_file_of_the_database_is_known_change_by_change(capsys: pytest.CaptureFixture[str]) -> None:
    files = {tzif.content(name): name for name in sorted(zone_names())}
    changes = 0
    for name in files.values():
        found = [tuple(change) for change in zone(name).changes(FIRST, LAST)]
        assert found == tzif.changes(name, FIRST, LAST), name
        changes += len(found)
    with capsys.disabled():
        print(f"\nzones: {len(files)} files, {changes:,} clock changes agree", end=" ")  # noqa: T201
    assert changes > 10_000


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Toronto", "Asia/Gaza", "Africa/Casablanca", "Pacific/Apia"])
def test_the_changes_of_a_century_of_wars_and_reforms_are_known(name: str) -> None:
    begin = at("1900-01-01T00:00Z")
    assert [tuple(change) for change in zone(name).changes(begin, FIRST)] == tzif.changes(name, begin, FIRST)


def test_zones_come_from_the_package_and_not_from_the_system(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "Asia").mkdir()
    (tmp_path / "Asia" / "Tokyo").write_bytes(tzif.content("America/New_York"))
    zoneinfo.reset_tzpath(to=[tmp_path])
    request.addfinalizer(zoneinfo.reset_tzpath)
    zoneinfo.ZoneInfo.clear_cache()
    zone.cache_clear()
    assert zone("Asia/Tokyo").stretch(at("2027-01-01T00:00Z")).offset == 9 * 3600
