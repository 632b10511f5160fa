//! Programs planted where `PATH` leads into the workspace: the server runs none of them for the person.
//!
//! Rule: the folders of `PATH` are those that real setups put first: an activated environment, binaries of packages,
//! direnv's `bin`, the current folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kode_e2e::{Offer, Project, Script, call, say, step};
use serde_json::{Value, json};

use super::KINDS;
use super::scene::Scene;
use crate::sandbox::fixture::User;

/// Folders of `PATH` inside the workspace, as absolute and as relative entries.
const FOLDERS: [(&str, &str); 5] = [
    (".venv/bin", "$WS/.venv/bin"),
    ("node_modules/.bin", "$WS/node_modules/.bin"),
    ("bin", "bin"),
    (".", "."),
    (".", ""),
];
/// Programs that the server, its hooks and its helpers start by name.
const PROGRAMS: [&str; 12] =
    ["bash", "sh", "git", "env", "bwrap", "cat", "ls", "node", "python3", "kode-ls", "rg", "true"];
const EVENTS: [&str; 5] = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];

#[test]
fn nothing_in_a_folder_of_the_workspace_is_run_by_its_name() {
    for (folder, entry) in FOLDERS {
        let look = step().call("Bash", json!({ "command": "ls; git status; cat a.txt" }));
        let work = call("Bash", json!({ "command": "bash -c true; env true" }));
        let project = Project::new(&Script::new([look, work, say("done")]));
        let (home, marker) = (project.outside().join("user"), project.outside().join("ran"));
        project.write("a.txt", "text\n");
        for name in PROGRAMS {
            let path = format!("{folder}/{name}");
            let text =
                format!("#!/bin/sh\necho {name} >> '{}'\nexec /usr/bin/{name} \"$@\"\n", marker.display());
            project.write(&path, text);
            fs::set_permissions(project.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir_all(home.join(".kode")).unwrap();
        let group = json!([{ "hooks": [{ "type": "command", "command": "git --version; cat > /dev/null; env true" }] }]);
        let hooks: serde_json::Map<String, Value> =
            EVENTS.iter().map(|event| ((*event).to_owned(), group.clone())).collect();
        let settings = json!({ "hooks": hooks, "sandbox": { "autoAllowBashIfSandboxed": true } });
        fs::write(home.join(".kode/settings.json"), settings.to_string()).unwrap();
        let entry = entry.replace("$WS", project.workspace().to_str().unwrap());
        let path = format!("{entry}:/usr/local/bin:/usr/bin:/bin");
        let client = project.start_as(&[], &[("HOME", home.to_str().unwrap()), ("PATH", &path)]);
        client.initialize(Offer::kode().params(&project.workspace()));
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        let done = session.run("go");
        assert_eq!(done["stopReason"], "end_turn", "{entry}: {done}");
        let ran = fs::read_to_string(&marker).unwrap_or_default();
        assert_eq!(ran, "", "{entry}: planted programs ran");
        drop(client);
        let output =
            project.run_as(&["run", "hello"], "", &[("HOME", home.to_str().unwrap()), ("PATH", &path)]);
        let ran = fs::read_to_string(&marker).unwrap_or_default();
        assert_eq!(ran, "", "{entry}: planted programs ran from the command line: {output:?}");
    }
}

#[test]
fn no_sandbox_of_any_user_is_set_up_by_a_planted_program() {
    for user in User::all() {
        for kind in KINDS {
            for (folder, entry) in FOLDERS {
                let scene = Scene::new(user);
                let marker = scene.path("marker/ran");
                let plant = format!(
                    "mkdir -p {folder}; for name in {}; do
                     printf '#!/bin/sh\necho ran >> {}\nexec /usr/bin/%s \"$@\"\n' $name > {folder}/$name
                     chmod 755 {folder}/$name; done",
                    PROGRAMS.join(" "),
                    marker.display(),
                );
                assert_eq!(scene.by_hand(&plant).code, 0);
                let entry = entry.replace("$WS", scene.path("ws").to_str().unwrap());
                let path = format!("{entry}:/usr/local/bin:/usr/bin:/bin");
                let output = scene.in_sandbox_by_path(kind, &path, "ls >/dev/null; echo here");
                assert_eq!(output.stdout, "here\n", "{kind} {user:?} {entry}: {output:?}");
                assert!(!scene.is_taken(), "{kind} {user:?} {entry}: a planted program ran outside");
            }
        }
    }
}
