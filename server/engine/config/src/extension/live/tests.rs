//! Files come, change and go while a listener exists.

use std::fs;

use super::*;
use kode_base::paths::real_path;

struct Bench {
    folder: tempfile::TempDir,
    root: AbsPath,
    extensions: Extensions,
    heard: watch::Receiver<Option<Arc<LoadedExtensions>>>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
        let (root, home) = (top.join("w"), top.join("home"));
        for folder in [&root, &home] {
            fs::create_dir(folder.as_path()).unwrap();
        }
        let places = ExtensionFolders::at_home(std::slice::from_ref(&root), Some(&home));
        let extensions = Extensions::begin(places, Arc::new(Vec::new), Arc::new(|name| name == "opus"));
        let heard = extensions.subscribe();
        Self { folder, root, extensions, heard }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
        // At once: the watch may read a file that is empty yet, and report it.
        let new = self.folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path.as_path()).unwrap();
    }

    /// Waits for the system to say that files are as `wanted`.
    async fn hear(&mut self, wanted: impl Fn(&LoadedExtensions) -> bool) -> Arc<LoadedExtensions> {
        let heard = self.heard.wait_for(|loaded| loaded.as_ref().is_some_and(|loaded| wanted(loaded)));
        heard.await.unwrap().clone().unwrap()
    }
}

fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Does things.\n{more}---\nYou do things.\n")
}

#[tokio::test]
async fn a_file_that_comes_changes_breaks_and_goes_is_heard_of_and_nothing_is_made() {
    let mut bench = Bench::new();
    bench.hear(|loaded| loaded.generation == 0).await;
    assert_eq!(fs::read_dir(bench.root.as_path()).unwrap().count(), 0, "no folder is made");
    bench.write(".claude/agents/deep/one.md", &agent("one", "model: opus\n"));
    bench.hear(|loaded| loaded.agents.find("one").is_ok()).await;
    assert_eq!(bench.extensions.problems(), []);
    bench.write(".claude/agents/deep/one.md", "---\nname: one\ncolor: [\n---\n");
    let broken = bench.hear(|loaded| !loaded.problems().is_empty()).await;
    assert!(broken.agents.find("one").is_err());
    let problem = &bench.extensions.problems()[0];
    assert_eq!(problem.file, Some(bench.root.join(".claude/agents/deep/one.md")));
    assert!(problem.place.is_some_and(|place| place.line >= 2), "{problem:?}");
    bench
        .write(".claude/agents/deep/one.md", &agent("one", "skills: [tidy]\nmodel: nonsense\ntools: Raed\n"));
    let mended = bench.hear(|loaded| loaded.agents.find("one").is_ok()).await;
    let reported: Vec<_> = mended.problems().into_iter().map(|problem| problem.message).collect();
    assert_eq!(reported.len(), 3, "{reported:?}");
    for (message, name) in reported.iter().zip(["`tidy`", "`nonsense`", "`Raed`"]) {
        assert!(message.contains(name), "{message}");
    }
    bench.write(".kode/skills/tidy/SKILL.md", "---\ndescription: Tidies.\n---\nTidy.\n");
    bench.hear(|loaded| loaded.catalog.find(ExtensionKind::Skill, "tidy").is_some()).await;
    fs::remove_dir_all(bench.root.join(".claude").as_path()).unwrap();
    bench.hear(|loaded| loaded.agents.find("one").is_err() && loaded.problems().is_empty()).await;
    bench.write(".claude/agents/again.md", &agent("again", ""));
    bench.hear(|loaded| loaded.agents.find("again").is_ok()).await;
}

#[tokio::test]
async fn who_asks_gets_files_as_they_are_and_files_are_read_only_when_one_has_changed() {
    let bench = Bench::new();
    bench.write(".blade/commands/go.md", "Go.");
    bench.write(".kode-ls/output-styles/pirate.md", "Arr.");
    let first = bench.extensions.now().await;
    assert!(
        first.styles.find("Pirate").is_ok() && first.catalog.find(ExtensionKind::Command, "go").is_some()
    );
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&bench.extensions.now().await, &first), "nothing is read again");
    }
    bench.write(".blade/commands/stop.md", "Stop.");
    let then = bench.extensions.now().await;
    assert!(
        then.catalog.find(ExtensionKind::Command, "stop").is_some() && then.generation > first.generation
    );
}
