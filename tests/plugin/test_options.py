"""The options of the pytest plugin: they set the defaults of checks, and cost nothing where nothing is checked."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PLUGIN = "gradcheck_plus.pytest_plugin"
Run = Callable[..., pytest.RunResult]

OPTIONS = ("max-examples", "seed", "time-budget", "device", "no-known", "keep-going", "out")
SETTINGS = """
    def test_settings():
        from gradcheck_plus import Settings
        assert Settings({changes}) == Settings({expected})
"""


DEFAULTS = "max_examples=500, seed=9, time_budget=None, device='cpu', known=True, keep_going=False"


@pytest.mark.parametrize("option", OPTIONS)
def test_the_options_are_in_the_help_of_pytest(option: str, run: Run) -> None:
    run("", "--help").stdout.fnmatch_lines(["gradcheck-plus: *", f"  --gradcheck-{option}*"])


def test_loading_the_plugin_imports_neither_torch_nor_hypothesis(tmp_path: Path) -> None:
    """Nor does a test run with all of its options, in which nothing is checked.

    Hypothesis brings a plugin of its own, which is left out here.
    """
    options = ["-q", "-p", PLUGIN, "-p", "no:hypothesispytest", "--gradcheck-seed=3", "--gradcheck-out=new"]
    code = (
        f"import sys, pytest\ncode = pytest.main({options})\n"
        "assert code == pytest.ExitCode.NO_TESTS_COLLECTED, code\n"
        f"assert '{PLUGIN}' in sys.modules\n"
        "sys.exit(', '.join({'torch', 'hypothesis'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("given", [True, False])
def test_the_options_are_the_defaults_of_settings_and_no_more(given: bool, run: Run) -> None:
    """Field by field what a test says itself holds, and the options hold for the rest of it; without them it is as it was."""
    said = ["max-examples=7", "seed=3", "time-budget=1.5", "device=cpu", "no-known", "keep-going"]
    options = [f"--gradcheck-{option}" for option in said] if given else []
    expected = "max_examples=7, seed=9, time_budget=1.5, device='cpu', known=False, keep_going=True" if given else DEFAULTS

    run(SETTINGS.format(changes="seed=9", expected=expected), *options).assert_outcomes(passed=1)


def test_the_options_that_are_set_are_in_the_header(run: Run) -> None:
    run("", "--gradcheck-seed=3", "--gradcheck-no-known").stdout.fnmatch_lines(["gradcheck-plus: seed=3, known=False"])
    run("").stdout.no_fnmatch_line("gradcheck-plus: *")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--gradcheck-max-examples=0", "ERROR: gradcheck-plus: `max_examples`=0 runs nothing. Write at least 1."),
        ("--gradcheck-max-examples=many", "*argument --gradcheck-max-examples: invalid int value: 'many'"),
        ("--gradcheck-time-budget=0", "ERROR: gradcheck-plus: `time_budget`=0.0 leaves no time. *"),
        ("--gradcheck-device=nonsense", "ERROR: gradcheck-plus: `device`='nonsense' is not supported. *"),
        ("--gradcheck-out=a_file", "ERROR: gradcheck-plus: `out`='a_file' cannot be written: *"),
        ("--gradcheck-sead=3", "*unrecognized arguments: --gradcheck-sead=3"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_before_any_test(
    option: str, said: str, run: Run, pytester: pytest.Pytester
) -> None:
    """Whether or not a test would come to it, and without a traceback."""
    (pytester.path / "a_file").touch()
    done = run("def test_nothing(): ...", option)

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([said])
    assert "Traceback" not in done.stderr.str() + done.stdout.str()
    assert "passed" not in done.stdout.str()


def test_a_run_inside_another_leaves_the_options_of_that_one_alone(run: Run) -> None:
    run(
        """
        import pytest
        pytest_plugins = ["pytester"]

        def test_outer(pytester):
            from gradcheck_plus.options import OPTIONS
            assert OPTIONS == {"seed": 3}
            pytester.makepyfile(
                "from gradcheck_plus.options import OPTIONS\\n\\ndef test_inner():\\n    assert OPTIONS == {'seed': 4}"
            )
            pytester.runpytest_inprocess("-p", "gradcheck_plus.pytest_plugin", "--gradcheck-seed=4").assert_outcomes(passed=1)
            assert OPTIONS == {"seed": 3}
        """,
        "--gradcheck-seed=3",
    ).assert_outcomes(passed=1)


def test_the_entry_point_and_the_option_p_load_one_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both at once are no clash, since both have the name of the module."""
    metadata = pytester.mkdir("site") / "gradcheck_plus_again-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: gradcheck-plus-again\nVersion: 0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{PLUGIN} = {PLUGIN}\n", encoding="utf-8")
    path = [str(metadata.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    pytester.makepyfile("def test_loaded(request):\n    assert request.config.getoption('gradcheck_seed') == 3")

    for named in ((), ("-p", PLUGIN)):
        pytester.runpytest_subprocess(*named, "--gradcheck-seed=3", timeout=120).assert_outcomes(passed=1)
