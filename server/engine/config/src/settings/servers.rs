//! The files besides the settings in which MCP servers stand, ours and those of other agents.
//!
//! Rule: they are only read. A broken one costs its own servers alone; it denies nothing, so that no protection is lost
//! with it.

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};

use super::declared::DeclarationKind;
use super::read::{FileOrigin, FileOwner, FileReader};
use super::text::{OPTIONS, SettingsText};
use super::{Settings, SettingsSources};
use crate::plugin::installed::InstalledPlugins;
use kode_base::paths::AbsPath;
use kode_permission::rules::{ProblemSeverity, SettingsLayer, SettingsProblem};

/// How large such a file may be, in bytes: some agents keep their whole state in it.
const MAX_BYTES: u64 = 8 << 20;

/// The content of a file of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServersShape {
    /// `mcpServers` at the top: a file of a project.
    Servers,
    /// The servers by name at the top: Kode's `.mcprc`.
    Bare,
    /// `mcpServers` at the top is for all projects: the state of an agent of the user.
    OfUser,
    /// `projects`, by folder, each with `mcpServers`: the state of an agent of the user.
    OfProjects,
}

/// A file that may hold servers.
pub(super) struct ServerFile<'a> {
    pub(super) file: AbsPath,
    pub(super) layer: SettingsLayer,
    pub(super) root: AbsPath,
    pub(super) workspace: Option<&'a AbsPath>,
    pub(super) shape: ServersShape,
}

impl SettingsSources {
    /// The files with servers of a layer, the strongest first.
    pub(super) fn server_files(&self, layer: SettingsLayer) -> Vec<ServerFile<'_>> {
        let states = || {
            self.home
                .iter()
                .flat_map(|home| [".kode.json", ".claude.json"].map(|name| (home, home.join(name))))
        };
        let of_user = |(home, file): (&AbsPath, AbsPath), shape| ServerFile {
            file,
            layer,
            root: home.clone(),
            workspace: None,
            shape,
        };
        match layer {
            SettingsLayer::Local => states().map(|state| of_user(state, ServersShape::OfProjects)).collect(),
            SettingsLayer::Project => {
                let of_root = |root| {
                    [
                        (".mcprc", ServersShape::Bare),
                        (".mcp.json", ServersShape::Servers),
                        (".blade/config.json", ServersShape::Servers),
                    ]
                    .map(|(name, shape)| (root, name, shape))
                };
                let files = self.roots.iter().flat_map(of_root);
                files
                    .map(|(root, name, shape): (&AbsPath, _, _)| ServerFile {
                        file: root.join(name),
                        layer,
                        root: root.clone(),
                        workspace: Some(root),
                        shape,
                    })
                    // Where the home folder is open as a workspace, the user's file is the user's.
                    .filter(|file| self.blade().is_none_or(|blade| blade != file.file))
                    .collect()
            }
            SettingsLayer::User => {
                let blade = self
                    .blade()
                    .zip(self.home.as_ref())
                    .map(|(file, home)| of_user((home, file), ServersShape::OfUser));
                states().map(|state| of_user(state, ServersShape::OfUser)).chain(blade).collect()
            }
            SettingsLayer::Managed
            | SettingsLayer::CommandLine
            | SettingsLayer::Session
            | SettingsLayer::Editor
            | SettingsLayer::Plugin
            | SettingsLayer::IgnoreFile
            | SettingsLayer::Default => Vec::new(),
        }
    }

    /// Takes in the servers of a file.
    pub(super) fn take_servers(
        &self,
        place: &ServerFile<'_>,
        installed: &InstalledPlugins,
        settings: &mut Settings,
    ) {
        // The problems of a file of settings has been told.
        let is_settings = settings.files.contains(&place.file);
        let reported = |message: String, place: Option<_>, file: &AbsPath| SettingsProblem {
            file: Some(file.clone()),
            place,
            severity: ProblemSeverity::Error,
            message: format!("No MCP server of this file is used: {message}."),
        };
        let text = match SettingsText::read_at_most(&place.file, MAX_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(_) if is_settings => return,
            Err(reason) => {
                settings.problems.push(reported(reason, None, &place.file));
                return;
            }
        };
        let parsed = match parse_to_ast(&text.text, &CollectOptions::default(), &OPTIONS) {
            Ok(parsed) => parsed,
            Err(_) if is_settings => return,
            Err(error) => {
                let range = text.place(error.range());
                settings.problems.push(reported(format!("{} here", error.kind()), Some(range), &place.file));
                return;
            }
        };
        let origin = FileOrigin {
            file: Some(&place.file),
            layer: place.layer,
            root: &place.root,
            owner: place.workspace.map_or(FileOwner::Person, FileOwner::Workspace),
            home: self.home.as_ref(),
            trust: self.trust(),
            installed,
            variable: self.variable,
        };
        match &parsed.value {
            Some(Node::Object(object)) => {
                let before = settings.declared.servers.len();
                FileReader::new(&origin, &text, settings).server_file(object, place.shape, &self.roots);
                if is_settings {
                    return;
                }
                if matches!(place.shape, ServersShape::Servers | ServersShape::Bare) {
                    settings.note_contents(&place.file, &text);
                }
                if place.shape == ServersShape::Servers || settings.declared.servers.len() > before {
                    settings.files.push(place.file.clone());
                }
            }
            Some(_) if is_settings => {}
            Some(other) => {
                let range = text.place(other.range());
                let message = "it holds something else than an object".to_owned();
                settings.problems.push(reported(message, Some(range), &place.file));
            }
            // An empty file says nothing.
            None => {}
        }
    }

    fn blade(&self) -> Option<AbsPath> {
        let folder = self.user_folders.iter().find(|folder| folder.as_path().ends_with(".blade"));
        folder.map(|folder| folder.join("config.json"))
    }
}

impl FileReader<'_, '_> {
    fn server_file(&mut self, object: &Object<'_>, shape: ServersShape, roots: &[AbsPath]) {
        match shape {
            ServersShape::Servers | ServersShape::OfUser => self.servers_in(object),
            ServersShape::Bare => {
                for server in &object.properties {
                    self.declare(DeclarationKind::Server, server.name.as_str(), &server.value);
                }
            }
            ServersShape::OfProjects => {
                let Some(projects) = object.get_object("projects") else { return };
                for root in roots {
                    let is_of_root = |project: &&ObjectProp<'_>| *project.name.as_str() == *root.to_string();
                    if let Some(Node::Object(project)) =
                        projects.properties.iter().find(is_of_root).map(|found| &found.value)
                    {
                        self.servers_in(project);
                    }
                }
            }
        }
    }

    fn servers_in(&mut self, object: &Object<'_>) {
        let servers = object.properties.iter().filter(|property| property.name.as_str() == "mcpServers");
        for property in servers {
            self.servers(property);
        }
    }
}
