//! Looks for skills and commands in folders.
//!
//! Rule: the result depends on the folders and the files that are named, and on nothing else. A file of a workspace must
//! not lead out of it: its text reaches the model.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::{fs, thread};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::copilot;
use super::front_matter::{self, FrontMatter};
use super::template::Template;
use super::{Catalog, Extension, ExtensionKind, ExtensionScope, FOLDERS, MAX_LISTED, ShadowedExtension};
use crate::extension::head::FrontMatterFile;
use crate::extension::places::{self, ExtensionFolders, ExtensionOrigin, ExtensionPart, project_folders};
use crate::hooks::declared::FileHooks;
use crate::plugin::Folders;
use kode_base::paths::{AbsPath, real_path};
use kode_base::{regular, steering};

/// The most bytes of a skill or command.
const MAX_BYTES: u64 = 256 * 1024;

/// The most skills and the most commands of one folder.
const MAX_ENTRIES: usize = 200;

/// Maximum depth of folders that are searched for commands.
const MAX_DEPTH: usize = 6;

/// Maximum depth of folders that are searched for skills.
pub(super) const MAX_SKILL_DEPTH: usize = 4;

/// Maximum number of folders without a skill that are searched for skills in one folder of skills.
const MAX_SKILL_FOLDERS: usize = 500;

/// The most characters of a skill's name.
const MAX_NAME: usize = 64;

/// Maximum number of folders with their own skills that are read beneath a workspace.
const MAX_BELOW: usize = 100;

/// Where something lies.
#[derive(Clone)]
struct SearchFolder {
    scope: ExtensionScope,
    root: AbsPath,
    plugin: Option<Arc<Folders>>,
}

impl SearchFolder {
    fn of(scope: ExtensionScope, root: AbsPath) -> Self {
        Self { scope, root, plugin: None }
    }

    fn of_plugin(place: &places::ExtensionFolder) -> Self {
        let root = place.within.clone().unwrap_or_else(|| place.folder.clone());
        Self { scope: ExtensionScope::Plugin, root, plugin: place.plugin.clone() }
    }
}

impl Catalog {
    /// Looks for what there is in these workspace folders, in the folders above them in their repositories, and in this
    /// home, whatever the environment says of other folders. Blocks on the disk.
    #[must_use]
    pub fn load(roots: &[AbsPath], home: Option<&AbsPath>) -> Self {
        Self::found_in(&ExtensionFolders::at_home(roots, home))
    }

    /// Looks for what there is in the folders of a workspace, in those above them in their repositories, and in the user's.
    /// A skill of the user wins over one of the project, a command of the project over one of the user. Blocks on the disk.
    #[must_use]
    pub fn found_in(places: &ExtensionFolders) -> Self {
        let (roots, home) = (&places.roots, places.home.as_ref());
        let mut catalog = Self::default();
        // Where the home folder is open as a workspace, its content is the user's.
        let own: Vec<_> = roots.iter().filter(|root| Some(*root) != home).collect();
        let above: Vec<AbsPath> = own
            .iter()
            .flat_map(|root| project_folders(root, home).into_iter().skip(1))
            .filter(|folder| !roots.contains(folder))
            .collect();
        let own = own.into_iter().map(|root| SearchFolder::of(ExtensionScope::Project, root.clone()));
        let above = above.into_iter().map(|root| SearchFolder::of(ExtensionScope::Above, root));
        let beneath = |place: SearchFolder| {
            let folders = FOLDERS.map(|name| place.root.join(name));
            // Where the environment names a folder of the workspace as the user's, it is the user's.
            let folders = folders.into_iter().filter(|folder| !places.user.contains(folder));
            folders.map(|folder| (place.clone(), folder)).collect::<Vec<_>>()
        };
        let of_project: Vec<_> = own.chain(above).collect();
        let prompts = of_project.iter().map(|place| (place.clone(), place.root.join(copilot::PROMPTS)));
        let prompts: Vec<_> = prompts.collect();
        let of_project: Vec<_> = of_project.into_iter().flat_map(beneath).collect();
        let of_user = places.user.iter().map(|folder| {
            let root = folder.parent().unwrap_or_else(|| folder.clone());
            (SearchFolder::of(ExtensionScope::User, root), folder.clone())
        });
        let of_user: Vec<_> = of_user.collect();
        let commands = || {
            let mut catalog = Self::default();
            for (place, folder) in of_project.iter().chain(&of_user) {
                // There the folders are a name space for people, and the name is that of the file.
                let by_file_name = folder.file_name() == ".blade";
                catalog.find_commands(place, &folder.join("commands"), &mut Vec::new(), by_file_name);
            }
            for (place, folder) in &prompts {
                catalog.find_prompts(place, folder);
            }
            for place in places.of_plugins(ExtensionPart::Commands) {
                catalog.find_commands(
                    &SearchFolder::of_plugin(&place),
                    &place.folder,
                    &mut Vec::new(),
                    false,
                );
            }
            catalog
        };
        let commands = beside(commands, || {
            for (place, folder) in of_user.iter().chain(&of_project) {
                catalog.find_skills(place, &folder.join("skills"));
            }
            for place in places.of_plugins(ExtensionPart::Skills) {
                catalog.find_skills(&SearchFolder::of_plugin(&place), &place.folder);
            }
        });
        catalog.commands = commands.commands;
        catalog.shadowed.extend(commands.shadowed);
        catalog.shadowed.truncate(MAX_ENTRIES);
        catalog.problems.extend(commands.problems);
        for (path, reason) in &catalog.problems {
            tracing::warn!(path = %path.display(), %reason, "a skill or command is left out");
        }
        catalog
    }

    /// The same once these files of these workspace folders were read or changed: with the skills of the folders they lie
    /// in, and with those in use that are for such files alone.
    #[must_use]
    pub fn having_touched(mut self, roots: &[AbsPath], files: &[AbsPath]) -> Self {
        let mut below: Vec<AbsPath> = Vec::new();
        for file in files {
            let Some(root) = roots.iter().find(|root| file.is_within(root)) else { continue };
            let mut folder = file.parent();
            while let Some(found) = folder.take_if(|found| *found != *root && found.is_within(root)) {
                if below.len() >= MAX_BELOW || below.contains(&found) {
                    break;
                }
                folder = found.parent();
                below.push(found);
            }
        }
        below.sort();
        for root in &below {
            let place = SearchFolder::of(ExtensionScope::Below, root.clone());
            for folder in FOLDERS {
                self.find_skills(&place, &root.join(folder).join("skills"));
            }
        }
        for skill in self.skills.values_mut().filter(|skill| skill.is_dormant) {
            let Some(patterns) = glob_set(&skill.paths) else { continue };
            let bases: Vec<&AbsPath> = match skill.scope {
                ExtensionScope::User | ExtensionScope::Plugin => roots.iter().collect(),
                ExtensionScope::Project | ExtensionScope::Above | ExtensionScope::Below => vec![&skill.root],
            };
            let is_meant = |file: &AbsPath| {
                let relative = bases.iter().filter_map(|base| file.as_path().strip_prefix(base).ok());
                relative.into_iter().any(|path| patterns.is_match(path))
            };
            skill.is_dormant = !files.iter().any(is_meant);
        }
        self
    }

    fn find_skills(&mut self, place: &SearchFolder, top: &AbsPath) {
        // A plugin may name a skill itself.
        if place.plugin.is_some() && top.join("SKILL.md").as_path().is_file() {
            return self.find_skill(place, &top.file_name(), top.clone());
        }
        let mut left = MAX_SKILL_FOLDERS;
        self.find_skills_beneath(place, top, 0, &mut left);
    }

    /// Looks for skills in a folder, and then in those of its folders that are none, so that of one name the upper wins.
    fn find_skills_beneath(&mut self, place: &SearchFolder, top: &AbsPath, depth: usize, left: &mut usize) {
        let mut others = Vec::new();
        for name in entries(top).into_iter().take(MAX_ENTRIES) {
            let folder = top.join(&name);
            if folder.join("SKILL.md").as_path().is_file() {
                self.find_skill(place, &name, folder);
            } else if depth < MAX_SKILL_DEPTH && may_hold_skills(&folder) {
                others.push(folder);
            }
        }
        for folder in others {
            let Some(rest) = left.checked_sub(1) else { return };
            *left = rest;
            self.find_skills_beneath(place, &folder, depth + 1, left);
        }
    }

    fn find_skill(&mut self, place: &SearchFolder, name: &str, folder: AbsPath) {
        let path = folder.join("SKILL.md");
        if is_skill_name(name) {
            self.add(place, ExtensionKind::Skill, name, path, folder);
        } else {
            let reason = "its folder's name is not 1 to 64 lower-case letters, digits and hyphens";
            self.problems.push((path.as_path().to_path_buf(), reason.to_owned()));
        }
    }

    fn find_commands(
        &mut self,
        place: &SearchFolder,
        folder: &AbsPath,
        above: &mut Vec<String>,
        by_file_name: bool,
    ) {
        if above.len() > MAX_DEPTH {
            return;
        }
        // A plugin may name a file itself.
        let found: Vec<AbsPath> = match folder.as_path().is_file() {
            true => vec![folder.clone()],
            false => entries(folder).iter().take(MAX_ENTRIES).map(|name| folder.join(name)).collect(),
        };
        for path in found {
            let (name, folder) = (path.file_name(), path.parent().unwrap_or_else(|| folder.clone()));
            if let Some(stem) = name.strip_suffix(".md").filter(|_| path.as_path().is_file()) {
                let mut parts = if by_file_name { Vec::new() } else { above.clone() };
                parts.push(stem.to_owned());
                let name = parts.join(":");
                if is_command_name(&name) {
                    self.add(place, ExtensionKind::Command, &name, path, folder);
                } else {
                    let reason = "its name has blanks or other characters that cannot be typed after `/`";
                    self.problems.push((path.as_path().to_path_buf(), reason.to_owned()));
                }
            } else if fs::symlink_metadata(path.as_path()).is_ok_and(|metadata| metadata.is_dir()) {
                above.push(name);
                self.find_commands(place, &path, above, by_file_name);
                above.pop();
            }
        }
    }

    /// Looks for the prompts of Copilot in a folder.
    fn find_prompts(&mut self, place: &SearchFolder, folder: &AbsPath) {
        for file in entries(folder).iter().take(MAX_ENTRIES) {
            let path = folder.join(file);
            let Some(name) = file.strip_suffix(copilot::PROMPT).filter(|_| path.as_path().is_file()) else {
                continue;
            };
            if is_command_name(name) {
                self.add(place, ExtensionKind::Command, name, path, folder.clone());
            } else {
                let reason = "its name has blanks or other characters that cannot be typed after `/`";
                self.problems.push((path.as_path().to_path_buf(), reason.to_owned()));
            }
        }
    }

    fn add(&mut self, place: &SearchFolder, kind: ExtensionKind, name: &str, path: AbsPath, folder: AbsPath) {
        let name = match &place.plugin {
            Some(plugin) => format!("{}:{name}", plugin.name),
            None => name.to_owned(),
        };
        let known = match kind {
            ExtensionKind::Skill => &mut self.skills,
            ExtensionKind::Command => &mut self.commands,
        };
        let winner = known.get(&name).map(|winner| winner.path.clone());
        if winner.as_ref() == Some(&path) {
            return;
        }
        let (entries, most) = match &winner {
            Some(_) => (self.shadowed.len(), MAX_ENTRIES),
            None => (known.len(), MAX_ENTRIES),
        };
        if entries >= most {
            return;
        }
        let text = read_of(place.scope, &place.root, &path);
        let read =
            text.and_then(|text| head(&text, Extension::named(kind, name.clone(), place, &path, &folder)));
        match (read, winner) {
            (Ok((extension, _)), Some(by)) => self.shadowed.push(ShadowedExtension { extension, by }),
            (Ok((extension, _)), None) => drop(known.insert(name, extension)),
            (Err(reason), _) => self.problems.push((path.as_path().to_path_buf(), reason)),
        }
    }
}

/// Does one thing on a thread of its own while this one does another, and gives what the first one gives: where there are many
/// files, one processor is at one half of them. A panic in it continues here.
pub(super) fn beside<T: Send>(one: impl FnOnce() -> T + Send, other: impl FnOnce()) -> T {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        other();
        one.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

impl Extension {
    /// Reads its file again: what its head says now, and its text.
    ///
    /// # Errors
    /// Why it cannot be used: the file is gone, too large, broken or leads out of its folder by now.
    pub fn read(&self) -> Result<(Self, Template), String> {
        let text = read_of(self.scope, &self.root, &self.path)?;
        let place = SearchFolder { scope: self.scope, root: self.root.clone(), plugin: self.plugin.clone() };
        head(&text, Self::named(self.kind, self.name.clone(), &place, &self.path, &self.folder))
    }

    fn named(
        kind: ExtensionKind,
        name: String,
        place: &SearchFolder,
        path: &AbsPath,
        folder: &AbsPath,
    ) -> Self {
        Self {
            kind,
            name,
            listing: String::new(),
            argument_hint: String::new(),
            argument_names: Vec::new(),
            argument_base: None,
            model_may_call: true,
            user_may_call: true,
            scope: place.scope,
            root: place.root.clone(),
            path: path.clone(),
            folder: folder.clone(),
            plugin: place.plugin.clone(),
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            model: None,
            effort: None,
            agent: None,
            background: false,
            paths: Vec::new(),
            shell: kode_base::command_shell::CommandShell::default(),
            hooks: None,
            trust_requests: Vec::new(),
            notes: Vec::new(),
            is_dormant: false,
        }
    }
}

/// Fills in what a file says.
fn head(text: &str, bare: Extension) -> Result<(Extension, Template), String> {
    let translated = copilot::is_prompt(&bare.path).then(|| copilot::prompt(text));
    let text = translated.as_ref().map_or(text, |prompt| prompt.text.as_str());
    let (head, body) = front_matter::split(text);
    let mut front = head.map(FrontMatter::parse).transpose()?.unwrap_or_default();
    front.notes.extend(translated.iter().flat_map(|prompt| prompt.notes.iter().cloned()));
    let described = front.description.filter(|text| !text.trim().is_empty());
    let description = described.unwrap_or_else(|| first_paragraph(body));
    let listing = match front.when_to_use {
        Some(when) => format!("{} {}", description.trim(), when.trim()),
        None => description.trim().to_owned(),
    };
    // A list of one line each: text of a file must not be able to begin a line of its own.
    let listing: String = listing.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut notes = front.notes;
    let paths = match bare.kind {
        ExtensionKind::Skill => front.paths,
        ExtensionKind::Command => Vec::new(),
    };
    if !paths.is_empty() && glob_set(&paths).is_none() {
        notes.push("`paths` has a pattern that cannot be read, so it is not followed".to_owned());
    }
    let origin = match bare.scope {
        ExtensionScope::User => ExtensionOrigin::User,
        ExtensionScope::Plugin => ExtensionOrigin::Plugin,
        ExtensionScope::Project | ExtensionScope::Above | ExtensionScope::Below => ExtensionOrigin::Project,
    };
    let at = FrontMatterFile { file: bare.path.clone(), root: bare.root.clone(), origin };
    let hooks = front.hooks.and_then(|hooks| {
        // The programs of a plugin are shown before it is installed, and that is the content of its own file of hooks.
        let read = match bare.plugin {
            Some(_) => {
                Err("`hooks` of what a plugin brings do not run; they belong in its `hooks/hooks.json`"
                    .to_owned())
            }
            None => FileHooks::read(&hooks, head.unwrap_or_default(), at),
        };
        read.map_err(|reason| notes.push(reason)).ok()
    });
    let template = Template::of(body.trim());
    let mut extension = Extension {
        listing: listing.chars().take(MAX_LISTED).collect(),
        argument_hint: front.argument_hint.unwrap_or_default().replace(char::is_control, " "),
        argument_names: front.arguments,
        argument_base: front.argument_base,
        model_may_call: !front.disable_model_invocation,
        user_may_call: front.user_invocable,
        allowed_tools: front.allowed_tools,
        disallowed_tools: front.disallowed_tools,
        model: front.model,
        effort: front.effort,
        agent: front.agent,
        background: front.background,
        is_dormant: glob_set(&paths).is_some_and(|patterns| !patterns.is_empty()),
        paths,
        shell: front.shell,
        hooks,
        notes,
        ..bare
    };
    extension.trust_requests = match extension.scope {
        // A plugin was approved as a whole.
        ExtensionScope::User | ExtensionScope::Plugin => Vec::new(),
        ExtensionScope::Project | ExtensionScope::Above | ExtensionScope::Below => {
            template.trust_requests(&extension)
        }
    };
    Ok((extension, template))
}

/// The patterns of a `paths`; `None` when one of them cannot be read.
fn glob_set(patterns: &[String]) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_start_matches("./");
        // A name alone is one at any depth.
        let pattern = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        set.add(GlobBuilder::new(&pattern).literal_separator(true).build().ok()?);
    }
    set.build().ok()
}

/// The names in a folder, sorted; none when it cannot be read.
fn entries(folder: &AbsPath) -> Vec<String> {
    let Ok(read) = fs::read_dir(folder.as_path()) else { return Vec::new() };
    let mut names: Vec<String> =
        read.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Whether a folder without a skill is searched for some: a link, a hidden folder and one of dependencies are not.
pub(super) fn may_hold_skills(folder: &AbsPath) -> bool {
    let name = folder.file_name();
    !name.starts_with('.')
        && !steering::holds_dependencies(name.as_ref())
        && fs::symlink_metadata(folder.as_path()).is_ok_and(|found| found.is_dir())
}

fn is_skill_name(name: &str) -> bool {
    let fits = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits)
}

fn is_command_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|char: char| char.is_whitespace() || char.is_control() || char == '/')
}

/// The text of a file. The user's own may lie wherever the user has put them; others must not lead out of their project.
fn read_of(scope: ExtensionScope, root: &AbsPath, path: &AbsPath) -> Result<String, String> {
    match scope {
        ExtensionScope::User => read(path),
        ExtensionScope::Project | ExtensionScope::Above | ExtensionScope::Below | ExtensionScope::Plugin => {
            read_within(root, path)
        }
    }
}

fn read_within(root: &AbsPath, path: &AbsPath) -> Result<String, String> {
    let real = |path: &Path| real_path(path).map_err(|error| format!("{}: {error}", path.display()));
    if !real(path.as_path())?.starts_with(real(root.as_path())?) {
        return Err(format!("it leads out of {root}"));
    }
    read(path)
}

fn read(path: &AbsPath) -> Result<String, String> {
    regular::read_text(path.as_path(), MAX_BYTES).map_err(|error| format!("{path} cannot be read: {error}"))
}

fn first_paragraph(body: &str) -> String {
    let lines = body.trim().lines().skip_while(|line| line.starts_with('#') || line.trim().is_empty());
    lines.take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ")
}
