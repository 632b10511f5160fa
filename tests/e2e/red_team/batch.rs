//! Attacks side by side: one sandbox, and one person who comes after it, for many of them.
//!
//! Rule: each attack has a repository of its own, which is a folder to write in of its own, and a marker of its own. An attack
//! that did not run to its end fails the test: the one before it may have ended the others.

use kode_e2e::{Output, copy_folder};

use super::Attack;
use super::scene::{NEXT, Scene};
use crate::sandbox::fixture::{User, give};

/// A scene with a repository for each attack.
pub(super) struct Batch<'a> {
    scene: Scene,
    user: User,
    attacks: &'a [&'static Attack],
}

impl<'a> Batch<'a> {
    /// Makes the repositories, and does in each what the person did before.
    pub(super) fn new(user: User, attacks: &'a [&'static Attack]) -> Self {
        let batch = Self { scene: Scene::new(user), user, attacks };
        for number in 0..attacks.len() {
            let folder = batch.scene.path(&folder(number));
            copy_folder(&batch.scene.path("ws"), &folder);
            if user == User::Nobody {
                give(&folder);
            }
        }
        let output = batch.scene.by_hand(&batch.script(|attack| attack.setup.to_owned()));
        batch.check_ends(&output, " 0");
        batch
    }

    /// Makes the attacks in one sandbox, each writable folder with one of them.
    pub(super) fn make(&self, kind: &str) -> Output {
        let folders = (0..self.attacks.len()).map(|number| self.scene.path(&folder(number)));
        let script = self.script(|attack| attack.script.to_owned());
        let output = self.scene.in_sandbox_with(kind, folders, &script);
        assert_ne!(output.code, 125, "{kind} {:?}: {output:?}", self.user);
        self.check_ends(&output, " ");
        output
    }

    /// Does in each repository what the person does afterwards.
    pub(super) fn proceed(&self) {
        let script = self.script(|attack| {
            let npm = if attack.npm { "npm" } else { "" };
            format!("bash -c {} next \"$PWD\" {npm}", quoted(NEXT))
        });
        self.check_ends(&self.scene.by_hand(&script), " 0");
    }

    /// The attacks of which something ran.
    pub(super) fn taken(&self) -> Vec<&'static str> {
        let is_taken = |number: usize| self.scene.path(&marker(number)).exists();
        let numbered = self.attacks.iter().enumerate();
        numbered.filter(|(number, _)| is_taken(*number)).map(|(_, attack)| attack.name).collect()
    }

    /// The changes around the repositories.
    pub(super) fn changes_outside(&self) -> Vec<String> {
        self.scene.changes_outside()
    }

    /// A script that runs one for each attack in its repository, in a shell of its own.
    fn script(&self, of: impl Fn(&Attack) -> String) -> String {
        let numbered = self.attacks.iter().enumerate();
        let each = numbered.map(|(number, attack)| {
            let (folder, marker) = (self.scene.path(&folder(number)), self.scene.path(&marker(number)));
            format!(
                "(cd {} && export P={} && bash -c {}) </dev/null >&2; echo end {number} $?\n",
                quoted(&folder.display().to_string()),
                quoted(&marker.display().to_string()),
                quoted(&of(attack)),
            )
        });
        each.collect()
    }

    /// Checks that all ran to their ends, and ended so.
    fn check_ends(&self, output: &Output, so: &str) {
        for (number, attack) in self.attacks.iter().enumerate() {
            let end = format!("end {number}{so}");
            let is_over = output.stdout.lines().any(|line| line.starts_with(&end));
            assert!(is_over, "{} did not run to its end: {output:?}", attack.name);
        }
    }
}

fn folder(number: usize) -> String {
    format!("ws-{number}")
}

fn marker(number: usize) -> String {
    format!("marker/ran-{number}")
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
