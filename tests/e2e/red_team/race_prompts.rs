//! Races on the attachments, images and instruction files of a prompt, while a process swaps the links that lead to them.
//!
//! Rule: as in the races of tools: no byte from outside reaches the model, and what lies inside does.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kode_e2e::{Client, Offer, Project, Script, say};
use serde_json::json;

use super::race::{SWAPS, Swapper};
use super::tries;

const SECRET: &str = "SECRET-OUTSIDE";
const INSIDE: &str = "KEPT-IN-HERE";
/// Attachments of a prompt, and prompts, all tries: 10,000 attachments.
const ATTACHED: usize = 50;
const PROMPTS: usize = 200;
/// Turns that read the instructions again, all tries.
const TURNS: usize = 150;
/// How a picture begins.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A picture with a text in it.
fn picture(text: &str) -> Vec<u8> {
    [PNG, text.repeat(3).as_bytes()].concat()
}

/// Makes the bytes of a staged file from a mark.
type Content<'a> = &'a dyn Fn(&str) -> Vec<u8>;

/// A project with `folder` and files, a folder outside with files of the same names, and links that lead to those.
fn staged(files: &[(&str, Content<'_>)]) -> (Project, Swapper) {
    let project = Project::new(&Script::default().otherwise([say("done")]));
    let outside = project.outside().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, project.path("link")).unwrap();
    let mut pairs = vec![("folder".to_owned(), "link".to_owned())];
    for (name, bytes) in files {
        project.write(&format!("folder/{name}"), bytes(INSIDE)).write(name, bytes(INSIDE));
        fs::write(outside.join(name), bytes(SECRET)).unwrap();
        let link = format!("link-{name}");
        symlink(outside.join(name), project.path(&link)).unwrap();
        pairs.push(((*name).to_owned(), link));
    }
    let swapper =
        Swapper::start(pairs.iter().map(|(one, other)| (project.path(one), project.path(other))).collect());
    (project, swapper)
}

fn opened(project: &Project) -> Client {
    project.connect(&Offer::kode())
}

/// Whether the newest request of the model has bytes from outside, and whether it has some from inside.
fn look(project: &Project) -> (bool, bool) {
    let request = project.model.last_request().to_string();
    let coded = |text: &str| STANDARD.encode(picture(text));
    let has = |text: &str| request.contains(text) || request.contains(&coded(text));
    (has(SECRET), has(INSIDE))
}

#[test]
fn attachments_in_a_race_bring_nothing_from_outside() {
    let lines = |text: &str| format!("{text}\n").repeat(ATTACHED).into_bytes();
    let (project, swapper) = staged(&[("file.txt", &lines), ("picture.png", &|text| picture(text))]);
    let client = opened(&project);
    let mut inside = 0;
    for number in 0..tries(PROMPTS) {
        let mut prompt = "see @folder/picture.png @picture.png".to_owned();
        for line in 1..=(ATTACHED - 2) / 2 {
            write!(prompt, " @folder/file.txt#L{line} @file.txt#L{line}").unwrap();
        }
        // A session of its own for each: what an earlier prompt brought does not count again.
        let session = client.session_with(json!({ "mode": "dontAsk" }));
        session.run(&prompt);
        let (is_leaked, is_read) = look(&project);
        assert!(!is_leaked, "prompt {number}: {}", project.model.last_request());
        inside += usize::from(is_read);
        client.call("agent/session/close", json!({ "sessionId": session.id }));
    }
    assert!(inside > 0, "{inside} prompts met what is inside");
    assert!(swapper.swaps() > tries(SWAPS), "{} swaps", swapper.swaps());
}

#[test]
fn instructions_in_a_race_bring_nothing_from_outside() {
    let (project, swapper) = staged(&[
        ("AGENTS.md", &|text| format!("{text} by name\n@folder/more.md\n").into_bytes()),
        ("CLAUDE.md", &|text| format!("{text} of another agent\n@more.md\n").into_bytes()),
        ("more.md", &|text| format!("{text} imported\n").into_bytes()),
        ("file.txt", &|text| format!("{text}\n").into_bytes()),
    ]);
    let client = opened(&project);
    let session = client.session_with(json!({ "mode": "dontAsk" }));
    let (mut inside, mut turns) = (0, 0);
    while turns < tries(TURNS) || swapper.swaps() < tries(SWAPS) {
        // The instructions of the folder come with the file.
        session.run("see @folder/file.txt");
        let (is_leaked, is_read) = look(&project);
        assert!(!is_leaked, "turn {turns}: {}", project.model.last_request());
        inside += usize::from(is_read);
        turns += 1;
    }
    assert!(inside > 0, "no turn met what is inside");
}
