//! Filters of Seatbelt's rules, and how they are written.
//!
//! Rule: a path is the name of a parameter here, never a text; texts are constants of this program.

/// The subjects that a rule applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// The path of this parameter.
    Literal(String),
    /// The path of this parameter, and all beneath.
    Subpath(String),
    /// Paths that a pattern matches.
    Regex(String),
    /// One of these.
    Any(Vec<Filter>),
    /// All of these.
    All(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
}

impl Filter {
    /// Not one of these; nothing for none.
    pub(super) fn none_of(filters: Vec<Self>) -> Option<Self> {
        if filters.is_empty() { None } else { Some(Self::Not(Box::new(Self::Any(filters)))) }
    }

    /// Those of `filters` but for `exceptions`.
    pub(super) fn but_for(filters: Vec<Self>, exceptions: Vec<Self>) -> Self {
        let mut all = vec![Self::Any(filters)];
        all.extend(Self::none_of(exceptions));
        Self::All(all)
    }

    /// Writes it, a line for each part.
    pub(super) fn write(&self, text: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        let mut group = |name: &str, filters: &[Self]| {
            text.push_str(&format!("{indent}({name}"));
            for filter in filters {
                text.push('\n');
                filter.write(text, depth + 1);
            }
            text.push(')');
        };
        match self {
            Self::Any(filters) => group("require-any", filters),
            Self::All(filters) => group("require-all", filters),
            Self::Not(filter) => group("require-not", std::slice::from_ref(filter)),
            Self::Literal(name) => text.push_str(&format!("{indent}(literal (param \"{name}\"))")),
            Self::Subpath(name) => text.push_str(&format!("{indent}(subpath (param \"{name}\"))")),
            Self::Regex(pattern) => text.push_str(&format!("{indent}(regex #\"{pattern}\")")),
        }
    }
}
