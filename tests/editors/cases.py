"""The cases of every editor: ask, watch, approve, refuse, decide about changes, also with fewer abilities of the
editor.

Rule: a case says what a user does and sees; the file of each editor has the keys for it. The text of a buffer is
read from the disk once it is saved, and until then from the screen.
"""

from collections.abc import Callable, Iterator

import chat
from world import Failed, World, call, say

NAME = "greeting.py"
BEFORE = 'first = 1\ngreeting = "Helo"\nlast = 3\n'
MINE = "mine = 0"
UNSAVED = f"{MINE}\n{BEFORE}"
AFTER = UNSAVED.replace("Helo", "Hello")

LINES = "".join(f"line_{number} = {number}\n" for number in range(1, 6))

NO_MESSAGES = ["capabilities/window", "capabilities/workspace/codeLens"]
NO_VERSIONS = ["capabilities/workspace/workspaceEdit"]
NO_EDITS = ["capabilities/workspace/applyEdit", "initializationOptions"]


def fix_a_typo(world: World, editor) -> None:
    """A model that changes one word of a file, and an editor with a line in it that is not saved."""
    world.write(NAME, BEFORE)
    world.serve(
        call("Read", file_path="{{cwd}}/" + NAME),
        call("Edit", file_path="{{cwd}}/" + NAME, old_string="Helo", new_string="Hello"),
        say("The greeting is fixed."),
    )
    editor.open(NAME)
    editor.type_line(MINE)
    world.sent("editor", "textDocument/didChange")


def change_two_places(world: World, editor) -> None:
    """A model that changes two places of a file in one call."""
    world.write(NAME, LINES)
    edits = [
        {"old_string": "line_2 = 2", "new_string": "line_2 = 22"},
        {"old_string": "line_4 = 4", "new_string": "line_4 = 44"},
    ]
    world.serve(
        call("Read", file_path="{{cwd}}/" + NAME),
        call("MultiEdit", file_path="{{cwd}}/" + NAME, edits=edits),
        say("Both places are changed."),
    )
    editor.open(NAME)


def wait_prompt(world: World, editor, *parts: str) -> None:
    """Waits until a prompt with these parts is on the screen."""
    editor.open_prompt()
    world.shows(*parts)


def wait_text(world: World, expected: str) -> None:
    """Waits until the file has this text on the disk."""
    try:
        world.until("the file is as expected", lambda: world.read(NAME) == expected)
    except Failed:
        raise Failed(f"the file has\n{world.read(NAME)}instead of\n{expected}") from None


def wait_hints(world: World, count: int) -> None:
    """Waits until this many changes wait for a decision in the editor."""

    def look() -> bool:
        told = world.traffic("server", "textDocument/publishDiagnostics")
        codes = [hint.get("code") for hint in told[-1]["params"]["diagnostics"]] if told else []
        return len([code for code in codes if code in ("kode.proposed", "kode.applied")]) == count

    world.until(f"{count} changes wait for a decision", look)


def edits(world: World) -> list[dict]:
    """The edits that the editor was asked to make."""
    return [request["params"]["edit"] for request in world.traffic("server", "workspace/applyEdit")]


def the_answer_is_seen_and_its_progress_before(world: World, editor) -> None:
    world.write(NAME, BEFORE)
    world.serve(call("Read", file_path="{{cwd}}/" + NAME), say("It greets nobody.", gate="answer"))
    editor.open(NAME)
    editor.ask("what does it greet")
    world.wait_held("answer")
    editor.sees_progress("what does it greet", f"Read {NAME}")
    world.release("answer")
    world.shows("It greets nobody.")


def lines_are_asked_about_by_a_code_action(world: World, editor) -> None:
    world.write(NAME, BEFORE)
    world.serve(say("A greeting is set."))
    editor.open(NAME)
    editor.act_on(1, 2, "Kode: Explain the selection")
    world.shows("A greeting is set.")
    prompt = world.prompt()
    assert "first = 1" in prompt and "Helo" in prompt and "last = 3" not in prompt, prompt


def a_yes_edits_the_unsaved_buffer_in_one_undo_step(world: World, editor) -> None:
    fix_a_typo(world, editor)
    editor.ask("fix the typo")
    wait_prompt(world, editor, '-greeting = "Helo"', '+greeting = "Hello"')
    editor.answer("Allow once")
    world.shows("The greeting is fixed.")
    assert world.read(NAME) == BEFORE, "an open document is changed in the editor, not on the disk"
    editor.save()
    wait_text(world, AFTER)
    editor.undo()
    editor.save()
    wait_text(world, UNSAVED)


def a_no_leaves_the_buffer_alone_and_the_model_hears_it(world: World, editor) -> None:
    fix_a_typo(world, editor)
    editor.ask("fix the typo")
    wait_prompt(world, editor, '+greeting = "Hello"')
    editor.answer("Deny")
    world.shows("The greeting is fixed.")
    assert "refused" in world.results()[-1], world.results()[-1]
    assert not edits(world)
    editor.save()
    wait_text(world, UNSAVED)


def one_change_is_undone_and_the_other_kept(world: World, editor) -> None:
    change_two_places(world, editor)
    editor.ask("change it")
    wait_prompt(world, editor, "+line_2 = 22", "+line_4 = 44")
    editor.answer("Allow once")
    world.shows("Both places are changed.")
    wait_hints(world, 2)
    editor.act(2, "Kode: Undo this change")
    wait_hints(world, 1)
    editor.act(4, "Kode: Keep this change")
    wait_hints(world, 0)
    editor.save()
    wait_text(world, LINES.replace("line_4 = 4", "line_4 = 44"))


def a_change_is_undone_by_its_lens(world: World, editor) -> None:
    change_two_places(world, editor)
    editor.ask("change it")
    wait_prompt(world, editor, "+line_2 = 22", "+line_4 = 44")
    editor.answer("Allow once")
    world.shows("Both places are changed.")
    wait_hints(world, 2)
    editor.lens(4, "Kode: Undo")
    wait_hints(world, 1)
    editor.save()
    wait_text(world, LINES.replace("line_2 = 2", "line_2 = 22"))


def one_change_is_rejected_before_it_is_made(world: World, editor) -> None:
    change_two_places(world, editor)
    editor.ask("change it")
    wait_prompt(world, editor, "+line_2 = 22", "+line_4 = 44")
    wait_hints(world, 2)
    editor.dismiss()
    editor.act(2, "Kode: Deny this change")
    wait_hints(world, 1)
    editor.act(4, "Kode: Allow this change")
    world.told("Both places are changed.")
    editor.save()
    wait_text(world, LINES.replace("line_4 = 4", "line_4 = 44"))


def typing_goes_on_while_a_prompt_waits_that_was_closed(world: World, editor) -> None:
    fix_a_typo(world, editor)
    editor.ask("fix the typo")
    wait_prompt(world, editor, '+greeting = "Hello"')
    editor.dismiss()
    editor.type_line("above = 0")
    editor.act(1, "Kode: Allow once")
    world.told("The greeting is fixed.")
    editor.save()
    wait_text(world, "above = 0\n" + AFTER)


def a_turn_is_cancelled(world: World, editor) -> None:
    world.write(NAME, BEFORE)
    world.serve(say("Too late.", gate="never"))
    editor.open(NAME)
    editor.ask("think for ever")
    world.wait_held("never")
    editor.cancel()
    answers = "the command has been answered"
    world.until(answers, lambda: any((told.get("result") or {}) == {"cancelled": True} for told in world.traffic("server")))
    world.release("never")
    editor.ask("think for ever")
    world.shows("Too late.")


def without_messages_and_progress_a_code_action_answers(world: World, editor) -> None:
    world.without = NO_MESSAGES
    fix_a_typo(world, editor)
    editor.ask("fix the typo")
    editor.sees_prompt(f"Edit {NAME}")
    editor.act(3, "Kode: Allow once")
    world.told("The greeting is fixed.")
    for method in ("window/showMessageRequest", "window/workDoneProgress/create", "workspace/codeLens/refresh"):
        assert not world.traffic("server", method), method
    editor.save()
    wait_text(world, AFTER)


def without_versioned_edits_the_buffer_is_edited(world: World, editor) -> None:
    world.without = NO_VERSIONS
    fix_a_typo(world, editor)
    editor.ask("fix the typo")
    wait_prompt(world, editor, '+greeting = "Hello"')
    editor.answer("Allow once")
    world.shows("The greeting is fixed.")
    assert [list(edit) for edit in edits(world)] == [["changes"]], edits(world)
    editor.save()
    wait_text(world, AFTER)


def without_edits_nothing_is_changed_and_the_model_hears_why(world: World, editor) -> None:
    world.without = NO_EDITS
    fix_a_typo(world, editor)
    editor.ask("fix the typo")
    wait_prompt(world, editor, '+greeting = "Hello"')
    editor.answer("Allow once")
    world.shows("The greeting is fixed.")
    assert "does not offer workspace/applyEdit" in world.results()[-1], world.results()[-1]
    assert not edits(world)
    editor.save()
    wait_text(world, UNSAVED)


CASES = [
    the_answer_is_seen_and_its_progress_before,
    lines_are_asked_about_by_a_code_action,
    a_yes_edits_the_unsaved_buffer_in_one_undo_step,
    a_no_leaves_the_buffer_alone_and_the_model_hears_it,
    one_change_is_rejected_before_it_is_made,
    typing_goes_on_while_a_prompt_waits_that_was_closed,
    a_turn_is_cancelled,
    without_messages_and_progress_a_code_action_answers,
    without_versioned_edits_the_buffer_is_edited,
    without_edits_nothing_is_changed_and_the_model_hears_why,
]

REVIEWED_LATER = [one_change_is_undone_and_the_other_kept]
"""The case of editors that leave saves to the user: a saved change is kept."""

WITH_LENSES = [a_change_is_undone_by_its_lens]
"""The case of editors that show code lenses."""


def a_wrapped_server_answers_beside_the_agent(world: World, editor) -> None:
    """`kode-ls wrap` in place of the editor's own server: its hover and definition, and an action of the agent."""
    world.write(NAME, "def twice(number: int) -> int:\n    return number * 2\n\n\nprint(twice(4))\n")
    world.serve(say("It doubles."))
    editor.open_wrapped(NAME)
    editor.hover(5, "twice", "(function) def twice")
    editor.go_to_definition(5, "twice")
    world.sent("editor", "textDocument/definition")
    world.until("the definition is found", lambda: has_definition(world))
    editor.act_on(1, 2, "Kode: Explain the selection")
    world.told("It doubles.")


def has_definition(world: World) -> bool:
    """Whether the editor received the place of a definition."""
    asked = [message["id"] for message in world.traffic("editor", "textDocument/definition")]
    answers = [message for message in world.traffic("server") if message.get("id") in asked and "method" not in message]
    return any("greeting.py" in str(answer.get("result")) for answer in answers)


WRAPPED = [a_wrapped_server_answers_beside_the_agent]


def of(kind: type) -> Iterator[tuple[str, Callable[[World, object], None]]]:
    """The cases for a kind of editor, by their titles."""
    whole = getattr(kind, "completes_commands", True)
    completing = (chat.COMPLETING if whole else chat.COMPLETING_NAMES) if hasattr(kind, "complete") else []
    with_lenses = WITH_LENSES if hasattr(kind, "lens") else []
    reviewed_later = [] if getattr(kind, "saves_edits", False) else REVIEWED_LATER
    wrapped = WRAPPED if hasattr(kind, "open_wrapped") else []
    for case in [*CASES, *reviewed_later, *with_lenses, *chat.CASES, *completing, *wrapped]:
        yield case.__name__.replace("_", " "), case
