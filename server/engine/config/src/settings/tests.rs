//! Settings on the disk of a temporary folder.

mod loading;
mod models;
mod writing;

use std::fs;

use super::*;
use kode_base::paths::real_path;

/// A workspace, a home and a state folder.
pub(super) struct Fixture {
    folder: tempfile::TempDir,
    pub(super) sources: SettingsSources,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
        for name in ["work", "home", "state", "elsewhere"] {
            fs::create_dir(path.join(name).as_path()).unwrap();
        }
        let (root, home) = (path.join("work"), path.join("home"));
        let mut sources = SettingsSources::new(vec![root], Some(home), path.join("state"), &|_| None);
        sources.managed = Some(path.join("managed.json"));
        Self { folder, sources }
    }

    pub(super) fn path(&self, name: &str) -> AbsPath {
        AbsPath::new(real_path(self.folder.path()).unwrap()).unwrap().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> AbsPath {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap().as_path()).unwrap();
        fs::write(file.as_path(), text).unwrap();
        file
    }

    pub(super) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name).as_path()).unwrap()
    }

    /// Approves all that a file asks for by these settings.
    pub(super) fn approve(&self, settings: &Settings, file: &AbsPath) -> Result<usize, SettingsError> {
        let trust_requests = settings.withheld.iter().map(|withheld| &withheld.trust_request);
        let digests: Vec<_> = trust_requests
            .filter(|trust_request| trust_request.file == *file)
            .map(TrustRequest::digest)
            .collect();
        self.sources.trust().approve_digests(settings, &digests)
    }

    pub(super) fn load(&self) -> Settings {
        self.sources.load()
    }
}

/// Rules as text, with their behaviors.
pub(super) fn reported(rules: &[PlacedRule]) -> Vec<String> {
    rules.iter().map(|rule| format!("{} {}", rule.behavior.name(), rule.rule)).collect()
}
