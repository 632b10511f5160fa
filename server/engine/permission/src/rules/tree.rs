//! The path patterns of many rules, as one tree of folder names.
//!
//! Rule: looking up a path costs its own length, whatever the number of rules: fixed names are looked up, and of the
//! patterns that begin with a wildcard in a folder on the way, only those are tried whose letters the path has.

use std::collections::HashMap;

use super::glob::{Letters, fold};
use super::path::{Cover, PathSegment};

/// Patterns of paths, each with the number of its rule.
#[derive(Debug, Default)]
pub(super) struct PathTree {
    nodes: Vec<TreeNode>,
    is_folded: bool,
}

#[derive(Debug, Default)]
struct TreeNode {
    children: HashMap<String, usize>,
    /// Patterns that end at this folder.
    ends: Vec<(usize, Cover)>,
    /// Patterns that continue with a wildcard here.
    tails: Vec<PatternTail>,
    /// The patterns that continue with `**/name`, by that name; the tail is what follows it.
    names: HashMap<String, Vec<PatternTail>>,
    /// The patterns that continue with `**/*.extension` and end there, by that extension.
    extensions: HashMap<String, Vec<(usize, Cover)>>,
}

#[derive(Debug)]
struct PatternTail {
    rule: usize,
    /// The letters it takes.
    needed: Letters,
    segments: Vec<PathSegment>,
    cover: Cover,
}

/// A path that is looked up.
pub(super) struct PathQuery<'a> {
    names: Vec<&'a str>,
    letters: Letters,
    folded: Vec<String>,
    folded_letters: Letters,
    /// Whether a pattern of a folder's content covers the folder itself.
    has_contents: bool,
}

impl<'a> PathQuery<'a> {
    pub(super) fn new(names: Vec<&'a str>, has_contents: bool) -> Self {
        let folded: Vec<String> = names.iter().map(|name| fold(name)).collect();
        let letters = Letters::of(names.iter().flat_map(|name| name.chars()));
        let folded_letters = Letters::of(folded.iter().flat_map(|name| name.chars()));
        Self { names, letters, folded, folded_letters, has_contents }
    }
}

impl PathTree {
    /// An empty tree; a folded one does not distinguish letter case.
    pub(super) fn new(is_folded: bool) -> Self {
        Self { nodes: vec![TreeNode::default()], is_folded }
    }

    /// Adds the pattern of `segments` beneath the folder of these names.
    pub(super) fn add(&mut self, rule: usize, base: &[String], segments: &[PathSegment], cover: Cover) {
        let base = base.iter().cloned().map(PathSegment::Name);
        let all: Vec<PathSegment> = base.chain(segments.iter().cloned()).map(|part| self.fit(part)).collect();
        let mut rest = all.as_slice();
        let mut at = 0;
        while let [PathSegment::Name(name), after @ ..] = rest {
            at = match self.nodes[at].children.get(name) {
                Some(child) => *child,
                None => {
                    let child = self.nodes.len();
                    self.nodes.push(TreeNode::default());
                    self.nodes[at].children.insert(name.clone(), child);
                    child
                }
            };
            rest = after;
        }
        let node = &mut self.nodes[at];
        match rest {
            [] => node.ends.push((rule, cover)),
            [PathSegment::Deep, PathSegment::Name(name), after @ ..] => {
                let tail = PatternTail::new(rule, after, cover);
                node.names.entry(name.clone()).or_default().push(tail);
            }
            [PathSegment::Deep, PathSegment::Glob(glob)] if let Some(extension) = glob.extension() => {
                node.extensions.entry(extension).or_default().push((rule, cover));
            }
            segments => node.tails.push(PatternTail::new(rule, segments, cover)),
        }
    }

    /// The lowest number of a rule that covers the path.
    pub(super) fn find(&self, looked: &PathQuery<'_>) -> Option<usize> {
        if self.is_folded {
            let names: Vec<&str> = looked.folded.iter().map(String::as_str).collect();
            self.walk(&names, looked.folded_letters, looked.has_contents)
        } else {
            self.walk(&looked.names, looked.letters, looked.has_contents)
        }
    }

    fn walk(&self, names: &[&str], letters: Letters, has_contents: bool) -> Option<usize> {
        let mut found = PathMatch { letters, has_contents, rule: None };
        let mut node = &self.nodes[0];
        for at in 0..=names.len() {
            let rest = &names[at..];
            found.take(&node.ends, rest);
            for tail in &node.tails {
                self.follow(tail, rest, &mut found);
            }
            if !node.names.is_empty() || !node.extensions.is_empty() {
                for (place, name) in rest.iter().enumerate() {
                    let after = &rest[place + 1..];
                    for tail in node.names.get(*name).into_iter().flatten() {
                        self.follow(tail, after, &mut found);
                    }
                    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
                    if let Some(ends) = extension.and_then(|extension| node.extensions.get(extension)) {
                        found.take(ends, after);
                    }
                }
            }
            match rest.first().and_then(|name| node.children.get(*name)) {
                Some(child) => node = &self.nodes[*child],
                None => break,
            }
        }
        found.rule
    }

    fn follow(&self, tail: &PatternTail, names: &[&str], found: &mut PathMatch) {
        // A case that an earlier rule decides need not be tried.
        if found.rule.is_none_or(|rule| tail.rule < rule)
            && found.letters.may_have(tail.needed)
            && let Some(after) = consume(&tail.segments, names, self.is_folded)
        {
            found.take(&[(tail.rule, tail.cover)], after);
        }
    }

    fn fit(&self, segment: PathSegment) -> PathSegment {
        match segment {
            PathSegment::Name(name) if self.is_folded => PathSegment::Name(fold(&name)),
            PathSegment::Glob(glob) if self.is_folded => PathSegment::Glob(glob.folded()),
            segment @ (PathSegment::Deep | PathSegment::Name(_) | PathSegment::Glob(_)) => segment,
        }
    }
}

impl PatternTail {
    fn new(rule: usize, segments: &[PathSegment], cover: Cover) -> Self {
        let letters = segments.iter().map(|segment| match segment {
            PathSegment::Deep => Letters::default(),
            PathSegment::Name(name) => Letters::of(name.chars()),
            PathSegment::Glob(glob) => glob.letters(),
        });
        let needed = letters.fold(Letters::default(), Letters::and);
        Self { rule, needed, segments: segments.to_vec(), cover }
    }
}

struct PathMatch {
    /// The patterns of the whole path.
    letters: Letters,
    has_contents: bool,
    rule: Option<usize>,
}

impl PathMatch {
    /// Takes rules whose patterns ended with `rest` of the path left.
    fn take(&mut self, ends: &[(usize, Cover)], rest: &[&str]) {
        for (rule, cover) in ends {
            let covers = match cover {
                Cover::All => true,
                Cover::Contents => self.has_contents || !rest.is_empty(),
            };
            if covers {
                self.rule = Some(self.rule.map_or(*rule, |found| found.min(*rule)));
            }
        }
    }
}

/// The rest of the names once the segments are used up; as much as can be.
fn consume<'a>(segments: &[PathSegment], names: &'a [&'a str], is_folded: bool) -> Option<&'a [&'a str]> {
    let (mut segment, mut name) = (0, 0);
    let mut deep = None;
    loop {
        let fits = match segments.get(segment) {
            None => return Some(&names[name..]),
            Some(PathSegment::Deep) => {
                segment += 1;
                deep = Some((segment, name));
                continue;
            }
            Some(PathSegment::Name(expected)) => names.get(name).is_some_and(|name| name == expected),
            Some(PathSegment::Glob(glob)) => {
                names.get(name).is_some_and(|name| glob.matches(name, is_folded))
            }
        };
        if fits {
            (segment, name) = (segment + 1, name + 1);
            continue;
        }
        // Nothing fits here: the last `**` takes one folder more.
        let (after, taken) = deep.as_mut()?;
        *taken += 1;
        if *taken > names.len() {
            return None;
        }
        (segment, name) = (*after, *taken);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::PathPattern;

    /// The verdict of a pattern in an ignore file of the root on a path.
    fn is_ignored(pattern: &str, path: &str) -> bool {
        let mut builder = ignore::gitignore::GitignoreBuilder::new("/");
        builder.add_line(None, pattern).unwrap();
        let ignored = builder.build().unwrap();
        // The root itself, whose name is empty, is no folder that a pattern could mean.
        let folders = std::path::Path::new(path).ancestors().filter(|place| place.file_name().is_some());
        folders
            .enumerate()
            .any(|(above, place)| ignored.matched(place.strip_prefix("/").unwrap(), above > 0).is_ignore())
    }

    fn covers(pattern: &str, path: &str) -> bool {
        let pattern: PathPattern = pattern.parse().unwrap();
        let mut tree = PathTree::new(false);
        for variant in pattern.variants() {
            tree.add(0, &[], &variant.segments, variant.cover);
        }
        tree.find(&PathQuery::new(path.split('/').filter(|name| !name.is_empty()).collect(), false)).is_some()
    }

    proptest! {
        #[test]
        fn patterns_mean_what_they_mean_in_ignore_files(
            pattern in "/?(a|b|\\*|\\?|\\*a|\\*\\*|a\\*b|\\[ab\\]|\\*\\.c)(/(a|b|\\*|\\*\\*|\\*\\.c|\\[!a\\])){0,3}/?",
            path in "/(a|b|ab|axb|a\\.c)(/(a|b|ba|x\\.c)){0,4}",
        ) {
            prop_assert_eq!(covers(&pattern, &path), is_ignored(&pattern, &path), "{} {}", pattern, path);
        }
    }

    #[test]
    fn the_first_of_several_rules_is_found_wherever_it_is_in_the_tree() {
        let patterns = ["**/x*y", "a/b", "**/b", "**/*.c", "a/*"];
        for turn in 0..patterns.len() {
            let mut tree = PathTree::new(false);
            for (rule, pattern) in patterns.iter().enumerate() {
                let pattern: PathPattern = pattern.parse().unwrap();
                let variant = &pattern.variants()[0];
                tree.add((rule + turn) % patterns.len(), &[], &variant.segments, variant.cover);
            }
            let names = vec!["a", "b", "x.y", "q.c"];
            assert_eq!(tree.find(&PathQuery::new(names, false)), Some(0), "{turn}");
        }
    }
}
