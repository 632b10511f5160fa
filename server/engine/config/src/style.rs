//! Output styles: how the agent answers, built in or written by the user.
//!
//! Rule: a style changes the form of answers and never permissions; a file of the project wins over one of the user,
//! one of the user over the built-in one, and an unreadable one is reported and not used.

use std::fs;

use serde::Deserialize;

use crate::agents::ShadowedAgent;
use crate::extension::front_matter;
use crate::extension::places::{
    ExtensionFolder, ExtensionFolders, ExtensionOrigin, ExtensionPart, check_within,
};
use crate::extension::problem::FileFault;
use kode_base::paths::AbsPath;
use kode_base::regular;
use kode_permission::rules::SettingsProblem;

/// The name of the style that is used by default.
pub const DEFAULT: &str = "Default";

/// The most bytes of a file.
const MAX_BYTES: u64 = 64 << 10;

/// The most files of a folder.
const MAX_FILES: usize = 200;

/// The built-in styles: name, what it is for, text.
const BUILT_IN: [(&str, &str, &str); 5] = [
    (DEFAULT, "short answers", include_str!("prompts/styles/default.md")),
    ("Explanatory", "explains its choices while it works", include_str!("prompts/styles/explanatory.md")),
    ("Learning", "leaves the deciding lines to you", include_str!("prompts/styles/learning.md")),
    ("Proactive", "does the next sensible thing unasked", include_str!("prompts/styles/proactive.md")),
    ("Concise", "as few words as possible", include_str!("prompts/styles/concise.md")),
];

/// How the agent answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Its name.
    pub name: String,
    /// Its purpose; may be empty.
    pub description: String,
    /// The text for the model.
    pub text: String,
    /// Whether the model learns how to go about code as well.
    pub keeps_coding: bool,
    /// Its owner.
    pub origin: ExtensionOrigin,
    /// The file it is from; `None` for a built-in one.
    pub file: Option<AbsPath>,
}

/// The styles there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Styles {
    /// The strongest first, each name once.
    styles: Vec<Style>,
    /// Styles that others of the same name hide.
    pub shadowed: Vec<ShadowedAgent>,
    /// The problems of files.
    pub problems: Vec<SettingsProblem>,
}

/// The header of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct StyleFrontMatter {
    name: Option<String>,
    description: Option<String>,
    keep_coding_instructions: Option<bool>,
}

impl Default for Style {
    fn default() -> Self {
        let (name, description, text) = BUILT_IN[0];
        Self::built_in(name, description, text)
    }
}

impl Default for Styles {
    /// The built-in styles.
    fn default() -> Self {
        Self::load(&ExtensionFolders::default())
    }
}

impl Styles {
    /// The styles that the files of these places describe, and those built in. Blocks on the disk.
    #[must_use]
    pub fn load(places: &ExtensionFolders) -> Self {
        let mut styles = Self { styles: Vec::new(), shadowed: Vec::new(), problems: Vec::new() };
        for place in places.of(ExtensionPart::Styles) {
            for (file, read) in read_folder(&place) {
                match read {
                    Ok(style) => styles.add(style),
                    Err((fault, text)) => styles.problems.push(fault.of(&file, &text)),
                }
            }
        }
        let built_in = BUILT_IN.map(|(name, description, text)| Style::built_in(name, description, text));
        built_in.into_iter().for_each(|style| styles.add(style));
        styles
    }

    /// The style of a name, whatever its letter case.
    ///
    /// # Errors
    /// The error for an unknown name, with the known ones.
    pub fn find(&self, name: &str) -> Result<&Style, String> {
        let wanted = name.trim();
        let is_it = |style: &&Style| style.name.to_lowercase() == wanted.to_lowercase();
        self.styles.iter().find(is_it).ok_or_else(|| {
            let known: Vec<_> = self.styles.iter().map(|style| style.name.as_str()).collect();
            let problems: String = self
                .problems
                .iter()
                .map(|problem| {
                    let file = problem.file.as_ref().map(ToString::to_string).unwrap_or_default();
                    format!(" {file}: {}", problem.message)
                })
                .collect();
            format!("there is no output style `{wanted}`; there are {}.{problems}", known.join(", "))
        })
    }

    /// All styles, the strongest first.
    pub fn iter(&self) -> impl Iterator<Item = &Style> {
        self.styles.iter()
    }

    fn add(&mut self, added: Style) {
        match self.styles.iter().find(|known| known.name.to_lowercase() == added.name.to_lowercase()) {
            Some(stronger) => self.shadowed.push(ShadowedAgent {
                name: added.name,
                origin: added.origin,
                file: added.file,
                by: stronger.file.clone(),
            }),
            None => self.styles.push(added),
        }
    }
}

impl Style {
    /// Whether it is the default one.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.file.is_none() && self.name == DEFAULT
    }

    fn built_in(name: &str, description: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            text: text.trim().to_owned(),
            keeps_coding: true,
            origin: ExtensionOrigin::BuiltIn,
            file: None,
        }
    }
}

/// The result of a file: the style, or the reason why it is missing, with the file's text.
type StyleFile = Result<Style, (FileFault, String)>;

/// The styles in a folder, in the order of their files' names.
fn read_folder(place: &ExtensionFolder) -> Vec<(AbsPath, StyleFile)> {
    let files = match fs::read_dir(&place.folder) {
        Ok(entries) => {
            let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).take(MAX_FILES).collect();
            names.sort();
            names.iter().map(|name| place.folder.join(name)).collect()
        }
        // A plugin may name a file itself.
        Err(_) if place.folder.as_path().is_file() => vec![place.folder.clone()],
        Err(_) => Vec::new(),
    };
    let read = |file: AbsPath| {
        let name = file.file_name();
        let style = text(&file, place).map_err(|reason| (FileFault::error(reason), String::new()));
        let style = style.and_then(|text| {
            parse(&text, name.trim_end_matches(".md"), &file, place).map_err(|fault| (fault, text))
        });
        let style = style.map_err(|(fault, text)| {
            let message = format!("This output style is left out: {}.", fault.message);
            (FileFault { message, ..fault }, text)
        });
        (file, style)
    };
    files.into_iter().map(read).collect()
}

fn text(path: &AbsPath, place: &ExtensionFolder) -> Result<String, String> {
    check_within(path.as_path(), place.within.as_ref())?;
    regular::read_text(path.as_path(), MAX_BYTES).map_err(|error| error.to_string())
}

fn parse(text: &str, stem: &str, file: &AbsPath, place: &ExtensionFolder) -> Result<Style, FileFault> {
    let (head, body) = front_matter::split(text);
    let head = match head.filter(|head| !head.trim().is_empty()) {
        Some(head) => {
            serde_saphyr::from_str::<StyleFrontMatter>(head).map_err(|error| FileFault::of_head(&error))?
        }
        None => StyleFrontMatter::default(),
    };
    Ok(Style {
        name: place.name_of(head.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(stem)),
        description: head.description.unwrap_or_default(),
        text: body.trim().to_owned(),
        keeps_coding: head.keep_coding_instructions.unwrap_or(false),
        origin: place.origin,
        file: Some(file.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &AbsPath, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_style_is_found_by_its_name_the_nearest_first() {
        let folder = tempfile::tempdir().unwrap();
        let place = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        let (root, home) = (place.join("w"), place.join("home"));
        write(&root.join(".claude/output-styles/pirate.md"), "---\nname: Pirate\n---\nArr.");
        write(&home.join(".kode/output-styles/pirate.md"), "of the user");
        write(
            &home.join(".kode/output-styles/formal.md"),
            "---\nname: Formal\ndescription: stiff\nkeep-coding-instructions: true\n---\n\nBe formal.\n",
        );
        write(&home.join(".kode/output-styles/broken.md"), "---\nname: [\n---\nx");
        let styles = Styles::load(&ExtensionFolders::at_home(std::slice::from_ref(&root), Some(&home)));
        let find = |name: &str| styles.find(name);
        let pirate = find("pirate").unwrap();
        assert_eq!((pirate.text.as_str(), pirate.keeps_coding), ("Arr.", false));
        let formal = find(" FORMAL").unwrap();
        assert_eq!((formal.text.as_str(), formal.keeps_coding), ("Be formal.", true));
        assert_eq!(find("concise").unwrap().name, "Concise");
        assert_eq!((&styles.shadowed[0].by, styles.shadowed[0].name.as_str()), (&pirate.file, "pirate"));
        let broken = &styles.problems[0];
        assert_eq!(
            (broken.place.unwrap().line, broken.file.as_ref()),
            (1, Some(&home.join(".kode/output-styles/broken.md")))
        );
        let error = find("nonsense").unwrap_err();
        assert!(
            error.contains("Pirate, Formal, Default, Explanatory, Learning, Proactive, Concise")
                && error.contains("broken.md"),
            "{error}"
        );
    }
}
