"""The cases of every client: prompt, watch, allow, deny, edit beside unsaved text, cancel, run commands, resume.

Rule: a case says what a user does and sees; the file of each client has the keys for it, and says where it differs.
"""

import json
from collections.abc import Callable, Iterator

from clients import ClientWorld
from world import call, say

NAME = "greeting.py"
BEFORE = 'first = 1\ngreeting = "Helo"\nlast = 3\n'
AFTER = BEFORE.replace("Helo", "Hello")
MINE = "mine = 0"
UNSAVED = f"{MINE}\n{BEFORE}"
BOTH = f"{MINE}\n{AFTER}"
COMMAND = "printf made > made.txt"


def sees(world: ClientWorld, client, *parts: str) -> None:
    """Waits until the client shows all of these, whatever it puts between their words."""

    def look() -> bool:
        shown = " ".join(client.conversation().split())
        return all(" ".join(part.split()) in shown for part in parts)

    world.until(f"the client shows {parts}", look)


def opened(world: ClientWorld, client, *steps: dict, paired: bool = False) -> None:
    """A client with a file, and a model of these steps."""
    world.write(NAME, BEFORE)
    world.serve(*steps)
    client.open(NAME, paired)


def fixing(world: ClientWorld, client, paired: bool = False) -> None:
    """A model that fixes a word of a file."""
    path = "{{cwd}}/" + NAME
    edit = call("Edit", file_path=path, old_string="Helo", new_string="Hello")
    opened(world, client, call("Read", file_path=path), edit, say("The greeting is fixed."), paired=paired)


def an_answer_is_shown_while_it_comes(world: ClientWorld, client) -> None:
    opened(world, client, say("First half, second half.", chunk=6, gate="half", gate_after_events=5))
    client.ask("hello there")
    world.wait_held("half")
    sees(world, client, "First half")
    assert "second half." not in client.conversation()
    world.release("half")
    sees(world, client, "First half, second half.")


def an_allowed_command_runs(world: ClientWorld, client) -> None:
    opened(world, client, call("Bash", command=COMMAND), say("It has run."))
    client.ask("run it")
    sees(world, client, COMMAND)
    assert not world.has("made.txt")
    client.allow()
    sees(world, client, "It has run.")
    assert world.read("made.txt") == "made"


def a_denied_command_does_not_run(world: ClientWorld, client) -> None:
    opened(world, client, call("Bash", command=COMMAND), say("I see."))
    client.ask("run it")
    sees(world, client, COMMAND)
    client.deny()
    world.until("the turn has ended", lambda: world.stops() == ["cancelled" if client.denial_ends_turn else "end_turn"])
    assert not world.has("made.txt")
    if not client.denial_ends_turn:
        sees(world, client, "I see.")
        assert "refused" in world.heard(), world.heard()


def the_answer_for_longer_keeps_the_narrowest_rule(world: ClientWorld, client) -> None:
    path = "{{cwd}}/" + NAME
    first = call("Edit", file_path=path, old_string="first = 1", new_string="first = 11")
    last = call("Edit", file_path=path, old_string="last = 3", new_string="last = 33")
    opened(world, client, call("Read", file_path=path), first, last, say("Both are changed."))
    client.ask("change both")
    client.allow_always()
    sees(world, client, "Both are changed.")
    assert world.chosen() == ["allow-session"], world.chosen()


def a_change_is_seen_before_it_is_made(world: ClientWorld, client) -> None:
    fixing(world, client)
    client.ask("fix the typo")
    client.sees_change('greeting = "Helo"', 'greeting = "Hello"')
    assert world.read(NAME) == BEFORE
    client.allow()
    sees(world, client, "The greeting is fixed.")
    world.until("the file is changed", lambda: world.read(NAME) == AFTER)
    client.reload()
    world.until("the buffer is changed", lambda: client.buffer() == AFTER)


def a_change_is_taken_back_by_a_command(world: ClientWorld, client) -> None:
    fixing(world, client)
    client.ask("fix the typo")
    client.sees_change('greeting = "Hello"')
    client.allow()
    sees(world, client, "The greeting is fixed.")
    client.ask_command("undo 1")
    world.until("the file is as before", lambda: world.read(NAME) == BEFORE)
    client.reload()
    world.until("the buffer is as before", lambda: client.buffer() == BEFORE)


def unsaved_text_of_a_client_alone_is_as_the_page_says(world: ClientWorld, client) -> None:
    fixing(world, client)
    client.type_line(MINE)
    client.ask("fix the typo")
    client.edits_beside_unsaved()
    sees(world, client, "The greeting is fixed.")
    client.check_unsaved()


def unsaved_text_beside_the_language_server_is_seen_and_kept(world: ClientWorld, client) -> None:
    fixing(world, client, paired=True)
    client.type_line(MINE)
    world.until("the language server has the line", lambda: world.server_has() == UNSAVED)
    client.ask("fix the typo")
    client.sees_change('greeting = "Hello"')
    assert MINE in world.heard(), world.heard()
    client.allow()
    sees(world, client, "The greeting is fixed.")
    world.until("the buffer has both", lambda: client.buffer() == BOTH)
    assert client.is_unsaved() and world.read(NAME) == BEFORE
    client.undo()
    world.until("one step takes the change back", lambda: client.buffer() == UNSAVED)
    client.save()
    assert world.read(NAME) == UNSAVED


def a_turn_is_cancelled_and_the_next_prompt_answered(world: ClientWorld, client) -> None:
    world.write(NAME, BEFORE)
    world.serve(say("Never seen."), prompts=[("again", [say("Here I am.")]), ("think", [say("Too late.", gate="never")])])
    client.open(NAME)
    client.ask_in_session("think for ever")
    world.wait_held("never")
    client.cancel()
    world.until("the turn is cancelled", lambda: world.stops()[:1] == ["cancelled"])
    client.ask_in_session("again please")
    sees(world, client, "Here I am.")
    assert "Too late." not in client.conversation()


def a_turn_is_cancelled_while_it_asks(world: ClientWorld, client) -> None:
    opened(world, client, call("Bash", command=COMMAND), say("Never seen."))
    client.ask("run it")
    sees(world, client, COMMAND)
    client.cancel_asking()
    world.until("the turn is cancelled", lambda: world.stops() == ["cancelled"])
    assert not world.has("made.txt")


def a_command_of_the_agent_is_answered(world: ClientWorld, client) -> None:
    opened(world, client, say("Not asked."))
    client.ask_command("status")
    sees(world, client, "Mode")
    assert not world.asked()


def a_session_is_continued_after_all_was_killed(world: ClientWorld, client) -> None:
    opened(world, client, say("The number is 4711."))
    client.ask_in_session("remember a number")
    sees(world, client, "The number is 4711.")
    world.kill()
    client.resume(NAME, "remember a number")
    client.ask_in_session("which number was it")
    world.until("the model is asked", lambda: len(world.asked()) == 2)
    told = str(world.asked()[-1])
    assert "remember a number" in told and "The number is 4711." in told and "which number was it" in told, told


def a_second_prompt_during_a_turn_is_answered_after_it(world: ClientWorld, client) -> None:
    world.write(NAME, BEFORE)
    world.serve(say("Other."), prompts=[("second of two", [say("Two.")]), ("first of two", [say("One.", gate="one")])])
    client.open(NAME)
    client.ask("first of two")
    world.wait_held("one")
    client.ask_meanwhile("second of two")
    world.release("one")
    sees(world, client, "One.", "Two.")
    assert world.stops() == ["end_turn", "end_turn"]


def a_command_outside_of_the_sandbox_runs_in_the_clients_terminal(world: ClientWorld, client) -> None:
    world.config(".kode/settings.json", json.dumps({"sandbox": {"enabled": False, "clientTerminal": True}}))
    opened(world, client, call("Bash", command=f"{COMMAND}; echo from the terminal; exit 3"), say("It has run."))
    client.ask("run it")
    client.allow_in_terminal()
    sees(world, client, "It has run.")
    assert "Exit code 3" in world.heard() and "from the terminal" in world.heard(), world.heard()
    world.sent("agent", "terminal/release")


CASES = [
    an_answer_is_shown_while_it_comes,
    an_allowed_command_runs,
    a_denied_command_does_not_run,
    the_answer_for_longer_keeps_the_narrowest_rule,
    a_change_is_seen_before_it_is_made,
    a_change_is_taken_back_by_a_command,
    unsaved_text_of_a_client_alone_is_as_the_page_says,
    unsaved_text_beside_the_language_server_is_seen_and_kept,
    a_turn_is_cancelled_and_the_next_prompt_answered,
    a_turn_is_cancelled_while_it_asks,
    a_command_of_the_agent_is_answered,
    a_session_is_continued_after_all_was_killed,
    a_second_prompt_during_a_turn_is_answered_after_it,
    a_command_outside_of_the_sandbox_runs_in_the_clients_terminal,
]


def of(kind: type) -> Iterator[tuple[str, Callable[[ClientWorld, object], None]]]:
    """The cases for a client, by their titles; those it cannot do are not among them."""
    for case in CASES:
        needs_terminals = case is a_command_outside_of_the_sandbox_runs_in_the_clients_terminal
        if case.__name__ not in kind.cannot and (kind.has_terminals or not needs_terminals):
            yield case.__name__.replace("_", " "), case
