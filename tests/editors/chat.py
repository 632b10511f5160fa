"""The cases of chat documents in every editor: send, watch the answer, type meanwhile, approve, and
complete names.

Rule: as in the other cases; a document's content is read from the disk once it is saved, because a long one does not fit
on the screen.
"""

import re

from world import Failed, World, call, say

NAME = "talk.kode.md"
OTHER = "greeting.py"

LONG = "".join(f"Line {number} of the answer.\n" for number in range(1, 121))
"""An answer that comes in many edits."""

TYPED = [f"word{number} " for number in range(60)]


def send(world: World, editor, text: str) -> None:
    """Writes a prompt into a new chat document and sends it."""
    editor.open(NAME)
    editor.type_line(text)
    editor.act(1, "Kode: Send")


def wait_edit(world: World, text: str) -> None:
    """Waits until the editor has written this where it was asked to, and has told so."""

    def look() -> bool:
        told = world.traffic("editor", "textDocument/didChange")
        return any(text in change["text"] for message in told for change in message["params"]["contentChanges"])

    world.until(f"the editor has told that it shows {text!r}", look)


def saved(world: World, editor, pattern: str) -> re.Match[str]:
    """Writes the document, and waits until the file on the disk fits, with any white space between words."""
    editor.save()

    def look() -> re.Match[str] | None:
        text = world.read(NAME) if world.has(NAME) else ""
        return re.fullmatch(pattern, " ".join(text.split()))

    try:
        return world.until("the document is as expected", look)
    except Failed:
        raise Failed(f"the document has\n{world.read(NAME)}instead of\n{pattern}") from None


def an_answer_is_written_into_the_chat_document_and_the_next_prompt_goes_on(world: World, editor) -> None:
    world.serve(
        say("First half, second half.", chunk=6, gate="half", gate_after_events=5),
        prompts=[("^and now", [say("That was all.")])],
    )
    send(world, editor, "tell me")
    world.wait_held("half")
    world.shows("First half")
    world.release("half")
    world.shows("First half, second half.", "## You")
    wait_edit(world, "## You")
    editor.type_below(["and now"])
    found = saved(
        world, editor, r"tell me <!-- kode session (\w+) --> ## Kode First half, second half\. ## You and now"
    )
    editor.act(1, "Kode: Send")
    world.shows("That was all.")
    saved(world, editor, re.escape(found[0]) + r" ## Kode That was all\. ## You")


def what_is_typed_while_the_answer_comes_is_all_there(world: World, editor) -> None:
    world.serve(say(LONG, chunk=7, gate="begun", gate_after_events=9))
    send(world, editor, "a long story")
    world.wait_held("begun")
    world.shows("Line 1 of the answer.")
    world.release("begun")
    editor.type_below(TYPED)
    wait_edit(world, "## You")
    answer, typed = (" ".join(text.split()) for text in (LONG, "".join(TYPED)))
    saved(world, editor, rf"a long story <!-- kode session \w+ --> ## Kode {re.escape(answer)} ## You {typed}")


def a_prompt_is_answered_from_the_chat_document(world: World, editor) -> None:
    world.write(OTHER, 'greeting = "Helo"\n')
    world.serve(
        call("Read", file_path="{{cwd}}/" + OTHER),
        call("Edit", file_path="{{cwd}}/" + OTHER, old_string="Helo", new_string="Hello"),
        say("The greeting is fixed."),
    )
    send(world, editor, "fix the typo")
    wait_edit(world, "waits for your permission")
    editor.answer("Allow once")
    wait_edit(world, "## You")
    assert world.read(OTHER) == 'greeting = "Hello"\n', world.read(OTHER)
    saved(
        world, editor,
        rf"fix the typo <!-- kode session \w+ --> ## Kode - `Read {OTHER}`.* - waits for your permission: `Edit {OTHER}` "
        rf"- `Edit {OTHER}`.* The greeting is fixed\. ## You",
    )


def names_are_completed_in_a_chat_document(world: World, editor) -> None:
    world.write(OTHER, "")
    world.serve(say("Nothing is asked."))
    editor.open(NAME)
    editor.complete("see @gree", OTHER)
    saved(world, editor, f"see @{OTHER}")


def names_and_commands_are_completed_in_a_chat_document(world: World, editor) -> None:
    names_are_completed_in_a_chat_document(world, editor)
    editor.complete("/compa", "/compact")
    saved(world, editor, f"/compact see @{OTHER}")


CASES = [
    an_answer_is_written_into_the_chat_document_and_the_next_prompt_goes_on,
    what_is_typed_while_the_answer_comes_is_all_there,
    a_prompt_is_answered_from_the_chat_document,
]
COMPLETING = [names_and_commands_are_completed_in_a_chat_document]
"""The case of editors with completion by the server."""
COMPLETING_NAMES = [names_are_completed_in_a_chat_document]
"""The case of editors whose completion cannot put in commands."""
