"""Functions of the user's own are loaded by name, from their folder, and kindly refused if they are not there."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from cli_folder import Ran
from format_worlds import FORMATS

from discreet.cli.command_runner import run
from discreet.cli.options import function_named
from discreet.errors import InvalidParameter


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    text = "def noisy(value, size):\n    return [float(value)] * size\nnumber = 3\n"
    (tmp_path / "my_own_noise.py").write_text(text)
    yield tmp_path
    sys.modules.pop("my_own_noise", None)


def told(capfd: pytest.CaptureFixture[str], *arguments: str) -> Ran:
    capfd.readouterr()
    return Ran(int(run(list(arguments))), *capfd.readouterr())


def test_a_function_of_this_folder_is_attacked_and_drawn(own, capfd):
    name = ("attack", "floating-point", "my_own_noise:noisy", "--epsilon", "1")
    ran = told(capfd, *name, "--inputs", "0,0.5", "--samples", "1000", "--plot", "digits.svg", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["broken"]
    assert (own / "digits.svg").exists()


@pytest.mark.parametrize(
    "name", ["my_own_noise", "my_own_noise:", ":noisy", "my_own_noise:number", "my_own_noise:nothing", "nowhere:f",
             "nowhere.deeper:f", "../my_own_noise:noisy", "os;sys:f"]
)  # fmt: skip
def test_what_is_no_function_is_refused(own, name):
    with pytest.raises(InvalidParameter):
        function_named(name)


@pytest.mark.parametrize("wrong", [["--inputs", "0"], ["--inputs", "0,x"], ["--law", "cauchy"], ["--epsilon", "0"]])
def test_wrong_words_are_refused(own, capfd, wrong):
    ran = told(capfd, "attack", "floating-point", "my_own_noise:noisy", "--epsilon", "1", *wrong)
    assert ran.code != 0
    assert "bug" not in ran.err


def test_an_epsilon_is_explained_and_drawn(own, capfd):
    ran = told(capfd, "explain-epsilon", "--mu", "1", "--delta", "1e-6", "--plot", "meaning.svg")
    assert ran.code == 0, ran.err
    assert "at most 69.2 %" in ran.out
    assert (own / "meaning.svg").exists()
    assert told(capfd, "explain-epsilon").code != 0


def test_a_bundle_is_explained_by_its_own_noise(own, capfd):
    bundle = str(FORMATS / "bundle" / "bundle")
    ran = told(capfd, "explain-epsilon", "--bundle", bundle)
    assert ran.code == 0, ran.err
    assert "Is one patient in the data or not?" in ran.out
    assert "in at most 59.0 %" in ran.out.replace("59 %", "59.0 %"), "the number of its guarantee.md"
    for more in (["1"], ["--delta", "1e-6"], ["--mu", "1"]):
        refused = told(capfd, "explain-epsilon", *more, "--bundle", bundle)
        assert (refused.code, "leave EPSILON" in refused.err) == (2, True)
    shutil.copytree(bundle, own / "forged")
    page = own / "forged" / "guarantee.md"
    page.write_text(page.read_text(encoding="utf-8").replace("59.0 %", "50.1 %"), encoding="utf-8")
    assert "not consistent" in told(capfd, "explain-epsilon", "--bundle", "forged").err
