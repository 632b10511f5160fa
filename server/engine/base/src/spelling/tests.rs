//! Spellings against disks in memory, which say by rules of their own which names are one file.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::folding::{FoldingDisk, NameFolding};

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

/// A disk with these files, and the spellings on it.
fn disk(folding: NameFolding, files: &[&str]) -> (FoldingDisk, Spellings) {
    let disk = FoldingDisk::new(folding);
    files.iter().for_each(|file| disk.write(file));
    (disk.clone(), Spellings::new(disk))
}

#[test]
fn a_file_has_the_name_that_its_folder_lists() {
    let files = ["/Users/Ada/Src/README.md", "/Users/Ada/Src/u\u{308}ber.txt", "/Users/Ada/Src/straße"];
    let (_, spellings) = disk(NameFolding::LettersAndForms, &files);
    for (given, spelled) in [
        ("/users/ADA/src/readme.MD", files[0]),
        ("/Users/Ada/Src/README.md", files[0]),
        ("/Users/Ada/Src/\u{dc}ber.txt", files[1]),
        ("/Users/Ada/Src/STRASSE", files[2]),
        ("/users/ada", "/Users/Ada"),
        ("/users/ada/src/New.txt", "/Users/Ada/Src/New.txt"),
        ("/users/ada/New/readme.md", "/Users/Ada/New/readme.md"),
        ("/", "/"),
    ] {
        assert_eq!(spellings.spelled(&path(given)), path(spelled), "{given}");
    }
}

#[test]
fn letters_fold_and_forms_do_not_where_the_disk_says_so() {
    let composed = "/w/\u{fc}.txt";
    let (_, spellings) = disk(NameFolding::Letters, &["/w/A.txt", composed]);
    assert_eq!(spellings.spelled(&path("/w/a.txt")), path("/w/A.txt"));
    assert_eq!(spellings.spelled(&path("/w/\u{dc}.TXT")), path(composed));
    let split = path("/w/u\u{308}.txt");
    assert_eq!(spellings.spelled(&split), split, "another file, which is not there");
    let (_, spellings) = disk(NameFolding::Forms, &["/w/A.txt", composed]);
    assert_eq!(spellings.spelled(&path("/w/a.txt")), path("/w/a.txt"));
    assert!(!spellings.folds(&path("/w")));
}

#[test]
fn forms_are_one_where_a_file_shows_it_though_letters_are_not() {
    let (disk, spellings) = disk(NameFolding::Forms, &["/w/u\u{308}.txt"]);
    assert_eq!(spellings.spelled(&path("/w/\u{fc}.txt")), path("/w/u\u{308}.txt"));
    disk.write("/w/\u{e9}");
    assert_eq!(spellings.spelled(&path("/w/e\u{301}")), path("/w/\u{e9}"));
}

#[test]
fn names_that_do_not_exist_keep_their_spelling_and_are_compared_folded() {
    let (_, spellings) = disk(NameFolding::Letters, &["/W/There"]);
    for (one, other, is_same) in [
        ("/W/a.txt", "/w/A.TXT", true),
        ("/W/new/a.txt", "/w/NEW/A.txt", true),
        ("/W/\u{e4}", "/W/\u{c4}", true),
        ("/W/a\u{308}", "/W/\u{c4}", true),
        ("/W/a.txt", "/W/b.txt", false),
        ("/W/stra\u{df}e", "/W/STRASSE", false),
        ("/W/i", "/W/\u{130}", false),
        ("/W/there", "/w/THERE", true),
    ] {
        let compared = |text| spellings.compared(&path(text));
        assert_eq!(compared(one) == compared(other), is_same, "{one} {other}");
    }
    assert_eq!(spellings.spelled(&path("/w/New/A.txt")), path("/W/New/A.txt"));
    let (_, spellings) = disk(NameFolding::None, &["/w/There"]);
    assert_ne!(spellings.compared(&path("/w/a")), spellings.compared(&path("/w/A")));
    assert_ne!(spellings.compared(&path("/w/x/a")), spellings.compared(&path("/w/x/A")));
}

#[test]
fn each_folder_has_its_own_word() {
    let (disk, spellings) = disk(NameFolding::None, &["/home/Ada/x"]);
    disk.mount("/home/Ada/mount", NameFolding::Letters);
    disk.write("/home/Ada/mount/README.md");
    disk.mount("/home/Ada/mount/linux", NameFolding::None);
    for file in ["a", "A"] {
        disk.write(&format!("/home/Ada/mount/linux/{file}"));
    }
    for (folder, folds) in
        [("/", false), ("/home/Ada", false), ("/home/Ada/mount", true), ("/home/Ada/mount/linux", false)]
    {
        assert_eq!(spellings.folds(&path(folder)), folds, "{folder}");
    }
    assert_eq!(spellings.spelled(&path("/home/Ada/mount/readme.md")), path("/home/Ada/mount/README.md"));
    assert_eq!(spellings.spelled(&path("/home/ada/mount/readme.md")), path("/home/ada/mount/readme.md"));
    assert_eq!(spellings.spelled(&path("/home/Ada/mount/LINUX/a")), path("/home/Ada/mount/linux/a"));
}

#[test]
fn a_folder_without_names_is_taken_for_the_one_it_is_in_until_it_has_some() {
    let (disk, spellings) = disk(NameFolding::None, &["/w/x"]);
    disk.make_folder("/w/1");
    assert!(!spellings.folds(&path("/w/1")));
    disk.mount("/w/2", NameFolding::Letters);
    assert!(!spellings.folds(&path("/w/2")), "nothing shows it");
    disk.write("/w/2/Name");
    assert!(spellings.folds(&path("/w/2")));
    assert_eq!(spellings.spelled(&path("/w/2/name")), path("/w/2/Name"));
}

#[test]
fn a_renamed_file_has_its_new_name() {
    let (disk, spellings) = disk(NameFolding::Letters, &["/w/README.md"]);
    assert_eq!(spellings.spelled(&path("/w/readme.md")), path("/w/README.md"));
    disk.remove("/w/README.md");
    assert_eq!(spellings.spelled(&path("/w/readMe.md")), path("/w/readMe.md"));
    disk.write("/w/ReadMe.md");
    assert_eq!(spellings.spelled(&path("/w/README.md")), path("/w/ReadMe.md"));
}

#[test]
fn a_folder_that_does_not_fold_is_asked_once() {
    let (disk, spellings) = disk(NameFolding::None, &["/home/ada/src/a.rs", "/home/ada/src/\u{fc}.rs"]);
    for name in ["a.rs", "\u{fc}.rs"] {
        drop(spellings.spelled(&path("/home/ada/src").join(name)));
    }
    let asked = disk.questions();
    for name in ["a.rs", "b.rs", "\u{fc}.rs", "u\u{308}.rs", "New"] {
        let file = path("/home/ada/src").join(name);
        assert_eq!((spellings.spelled(&file), spellings.compared(&file)), (file.clone(), file));
    }
    assert_eq!(disk.questions(), asked);
}

#[test]
fn a_folder_that_folds_is_listed_once_while_it_stays_as_it_is() {
    let (disk, spellings) = disk(NameFolding::Letters, &["/w/README.md"]);
    let file = path("/w/README.md");
    let asked = |spellings: &Spellings| {
        let before = disk.questions();
        assert_eq!(spellings.spelled(&file), file);
        disk.questions() - before
    };
    asked(&spellings);
    // One question for each folder on the way: whether it is as it was.
    assert_eq!(asked(&spellings), 2);
    disk.write("/w/other");
    assert_eq!(asked(&spellings), 3, "the folder is listed again");
}

#[test]
fn a_deep_path_that_is_missing_costs_a_few_questions() {
    let (disk, spellings) = disk(NameFolding::Letters, &["/w/A"]);
    let deep = path("/w").join("x/".repeat(64)).join("END");
    let before = disk.questions();
    assert_eq!(spellings.spelled(&deep), deep);
    assert!(disk.questions() - before < 20, "{}", disk.questions() - before);
}

#[test]
fn the_disks_of_this_machine_answer_as_they_find_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(crate::paths::real_path(folder.path()).unwrap()).unwrap();
    std::fs::write(root.join("Name.txt"), "").unwrap();
    let spellings = Spellings::here();
    let finds = root.join("nAME.TXT").as_path().exists();
    assert_eq!(spellings.folds(&root), finds);
    let spelled = spellings.spelled(&root.join("nAME.TXT"));
    assert_eq!(spelled, if finds { root.join("Name.txt") } else { root.join("nAME.TXT") });
    let target = Target::File(root.join("Name.txt"));
    assert_eq!(spellings.target(target.clone()), target);
    assert_eq!(MountedDisks.stamp(root.join("Name.txt").as_path()), None);
}

fn folding() -> impl Strategy<Value = NameFolding> {
    use NameFolding::{Forms, Letters, LettersAndForms, None};
    prop::sample::select(vec![None, Letters, LettersAndForms, Forms])
}

/// Names that are like each other in letters or forms.
fn name() -> impl Strategy<Value = String> {
    let parts =
        ["a", "A", "\u{fc}", "\u{dc}", "u\u{308}", "U\u{308}", "\u{df}", "ss", "SS", "\u{130}", "i", "1"];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 1..4).prop_map(|parts| parts.concat())
}

proptest! {
    /// Of files that exist, two spellings give one path exactly when the disk has one file by both; and the result
    /// names the same file.
    #[test]
    fn two_spellings_are_one_path_exactly_when_the_disk_has_one_file(
        folding in folding(),
        files in prop::collection::vec((name(), name()), 1..6),
        asked in prop::collection::vec((name(), name()), 2..8),
    ) {
        let disk = FoldingDisk::new(folding);
        // A name in each folder that shows whether it folds.
        disk.write("/Shows");
        for (folder, file) in &files {
            disk.write(&format!("/{folder}/Shows"));
            disk.write(&format!("/{folder}/{file}"));
        }
        let spellings = Spellings::new(disk.clone());
        let all = asked.iter().chain(&files).map(|(folder, file)| path(&format!("/{folder}/{file}")));
        let found: Vec<_> = all.map(|given| (disk.file(given.as_path()), spellings.spelled(&given), given)).collect();
        for (file, spelled, given) in &found {
            prop_assert_eq!(disk.file(spelled.as_path()), *file, "{} {}", given, spelled);
            prop_assert_eq!(&spellings.spelled(spelled), spelled);
            let there = found.iter().filter(|(other, ..)| file.is_some() && other.is_some());
            for (other, other_spelled, other_given) in there {
                prop_assert_eq!(file == other, spelled == other_spelled, "{} {}", given, other_given);
                let is_same = spellings.compared(given) == spellings.compared(other_given);
                prop_assert_eq!(file == other, is_same, "{} {}", given, other_given);
            }
        }
    }

    /// The form for comparisons is one of its own: folding it again changes nothing.
    #[test]
    fn folding_twice_is_folding_once(name in "\\PC{0,12}") {
        let once = folded(OsStr::new(&name));
        prop_assert_eq!(folded(&once), once);
    }
}

#[test]
fn a_name_that_is_no_unicode_is_compared_as_it_is() {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let name = OsStr::from_bytes(b"A\xff");
        assert_eq!(folded(name), name);
        assert_eq!((other_form(name), other_case(name)), (None, None));
    }
    assert_eq!(folded(OsStr::new("\u{212a}")), "k", "the sign of Kelvin");
    assert_eq!(Path::new("a").file_name().map(folded), Some("a".into()));
}
