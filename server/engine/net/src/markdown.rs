//! Writes Markdown piece by piece.
//!
//! Rule: written text stays, and each call costs as much as it writes, however deeply a page is nested.
//! Nothing is escaped but what would become an image: the reader is a model, and pages of code should stay readable.

/// How deep lists and quotes are indented; what lies deeper is written at this depth.
const MAX_INDENT: usize = 12;
/// The separator of the cells of a row.
const CELL_SEPARATOR: &str = " | ";

/// How much space is between two pieces of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TextGap {
    /// None, they are in one line.
    #[default]
    None,
    /// A line break.
    Line,
    /// An empty line.
    Paragraph,
}

/// Something within a line that has a beginning and an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inline {
    /// `*`, `**`, `~~` or a backtick on either side.
    Mark(&'static str),
    /// A link.
    Link(String),
}

#[derive(Debug)]
struct OpenInline {
    inline: Inline,
    /// Whether its beginning is in the text. It is not before there is text in it.
    is_written: bool,
}

#[derive(Debug)]
struct Table {
    rows: usize,
    /// The number of cells in the row that is being written.
    cells: Option<usize>,
    /// Whether the table only serves to lay the page out: it has other tables in it.
    is_layout: bool,
}

/// The text so far and the open elements at its end.
#[derive(Debug, Default)]
pub(super) struct MarkdownWriter {
    out: String,
    gap: TextGap,
    /// Whether a space comes before the next word.
    space: bool,
    heading: usize,
    quotes: usize,
    /// How many quotes the last line was in.
    last_quotes: usize,
    /// The last number of ordered lists, nothing of others.
    lists: Vec<Option<usize>>,
    /// The marker of a list item that has no text yet.
    marker: Option<String>,
    inlines: Vec<OpenInline>,
    tables: Vec<Table>,
    /// The preformatted text that is being collected, and its language.
    preformatted: Option<(String, String)>,
}

impl MarkdownWriter {
    /// How many bytes are written.
    pub(super) fn len(&self) -> usize {
        self.out.len() + self.preformatted.as_ref().map_or(0, |(text, _)| text.len())
    }

    /// All that was written.
    pub(super) fn finish(mut self) -> String {
        self.end_preformatted();
        self.close_inlines();
        self.out
    }

    /// Begins a new line or paragraph. The gap is written when text follows.
    pub(super) fn gap(&mut self, gap: TextGap) {
        if gap == TextGap::None {
            return;
        }
        if let Some((text, _)) = &mut self.preformatted {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            return;
        }
        if self.is_in_cell() {
            self.space = true;
            return;
        }
        if gap == TextGap::Paragraph {
            self.close_inlines();
        }
        self.space = false;
        // A paragraph that begins a list item stays on the line of the item's marker.
        if self.marker.is_none() {
            self.gap = self.gap.max(gap);
        }
    }

    /// Writes text. Runs of white space are one space.
    pub(super) fn text(&mut self, text: &str) {
        if let Some((collected, _)) = &mut self.preformatted {
            collected.push_str(text);
            return;
        }
        for (at, word) in text.split([' ', '\n', '\t', '\r', '\u{c}']).enumerate() {
            self.space |= at > 0;
            if word.is_empty() {
                continue;
            }
            self.begin_text();
            let is_code = self.inlines.iter().any(|open| open.inline == Inline::Mark("`"));
            let is_cell = self.is_in_cell();
            match word {
                _ if is_cell && word.contains('|') => self.out.push_str(&word.replace('|', "\\|")),
                _ if !is_code && word.contains("![") => self.out.push_str(&word.replace("![", "!\\[")),
                _ => self.out.push_str(word),
            }
        }
    }

    /// Breaks the line, unless it must not be broken.
    pub(super) fn line_break(&mut self) {
        match &mut self.preformatted {
            Some((text, _)) => text.push('\n'),
            None if self.heading > 0 => self.space = true,
            None => self.gap(TextGap::Line),
        }
    }

    /// Draws a line across the page.
    pub(super) fn rule(&mut self) {
        self.gap(TextGap::Paragraph);
        if !self.is_in_cell() {
            self.begin_text();
            self.out.push_str("---");
        }
        self.gap(TextGap::Paragraph);
    }

    pub(super) fn begin_heading(&mut self, level: usize) {
        self.gap(TextGap::Paragraph);
        self.heading = level;
    }

    pub(super) fn end_heading(&mut self) {
        self.gap(TextGap::Paragraph);
        self.heading = 0;
    }

    pub(super) fn begin_quote(&mut self) {
        self.gap(TextGap::Paragraph);
        self.quotes += 1;
    }

    pub(super) fn end_quote(&mut self) {
        self.gap(TextGap::Paragraph);
        self.quotes = self.quotes.saturating_sub(1);
    }

    pub(super) fn begin_list(&mut self, is_ordered: bool) {
        self.gap(if self.lists.is_empty() { TextGap::Paragraph } else { TextGap::Line });
        self.lists.push(is_ordered.then_some(0));
    }

    pub(super) fn end_list(&mut self) {
        self.marker = None;
        self.lists.pop();
        self.gap(if self.lists.is_empty() { TextGap::Paragraph } else { TextGap::Line });
    }

    pub(super) fn begin_item(&mut self) {
        self.marker = None;
        self.gap(TextGap::Line);
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{number}. ")
            }
            Some(None) | None => "- ".to_owned(),
        };
        if !self.is_in_cell() {
            self.close_inlines();
            self.marker = Some(marker);
        }
    }

    pub(super) fn begin_preformatted(&mut self, language: &str) {
        if self.preformatted.is_none() && !self.is_in_cell() {
            self.gap(TextGap::Paragraph);
            self.preformatted = Some((String::new(), language.to_owned()));
        }
    }

    /// Names the language of the preformatted text, if that is not known yet.
    pub(super) fn language(&mut self, name: &str) {
        if let Some((_, language)) = &mut self.preformatted
            && language.is_empty()
        {
            name.clone_into(language);
        }
    }

    pub(super) fn end_preformatted(&mut self) {
        let Some((text, language)) = self.preformatted.take() else { return };
        let text = text.trim_end();
        let text = text.strip_prefix('\n').unwrap_or(text);
        if !text.trim().is_empty() {
            self.close_inlines();
            let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
            let fence = "`".repeat(longest.max(2) + 1);
            for (at, line) in
                [format!("{fence}{language}").as_str()].into_iter().chain(text.lines()).enumerate()
            {
                if at > 0 {
                    self.gap = TextGap::Line;
                }
                self.begin_line();
                self.out.push_str(line);
            }
            self.gap = TextGap::Line;
            self.begin_line();
            self.out.push_str(&fence);
        }
        self.gap(TextGap::Paragraph);
    }

    pub(super) fn is_preformatted(&self) -> bool {
        self.preformatted.is_some()
    }

    pub(super) fn begin_inline(&mut self, inline: Inline) {
        if self.preformatted.is_none() && self.inlines.len() < MAX_INDENT {
            self.inlines.push(OpenInline { inline, is_written: false });
        }
    }

    /// Ends the innermost inline that `is_it` picks.
    pub(super) fn end_inline(&mut self, is_it: impl Fn(&Inline) -> bool) {
        if self.preformatted.is_some() {
            return;
        }
        let Some(at) = self.inlines.iter().rposition(|open| is_it(&open.inline)) else { return };
        // Later elements that are still open continue after it.
        let later = self.inlines.split_off(at + 1);
        for open in later.iter().rev().filter(|open| open.is_written) {
            open.inline.write_end(&mut self.out);
        }
        if let Some(ended) = self.inlines.pop()
            && ended.is_written
        {
            ended.inline.write_end(&mut self.out);
        }
        let marks = later.into_iter().filter(|open| matches!(open.inline, Inline::Mark(_)));
        self.inlines.extend(marks.map(|open| OpenInline { is_written: false, ..open }));
    }

    pub(super) fn begin_table(&mut self) {
        for table in self.tables.iter_mut().rev().take_while(|table| !table.is_layout) {
            table.is_layout = true;
        }
        self.gap(TextGap::Paragraph);
        self.tables.push(Table { rows: 0, cells: None, is_layout: false });
    }

    pub(super) fn end_table(&mut self) {
        self.end_row();
        self.tables.pop();
        self.gap(TextGap::Paragraph);
    }

    pub(super) fn begin_row(&mut self) {
        self.end_row();
        self.gap(TextGap::Line);
        if let Some(table) = self.tables.last_mut() {
            table.cells = Some(0);
        }
    }

    pub(super) fn begin_cell(&mut self) {
        if self.tables.last().is_some_and(|table| table.cells.is_none()) {
            self.begin_row();
        }
        let Some(table) = self.tables.last_mut() else { return self.gap(TextGap::Line) };
        if table.is_layout {
            return self.gap(TextGap::Line);
        }
        let cells = table.cells.get_or_insert(0);
        *cells += 1;
        let is_first = *cells == 1;
        self.close_inlines();
        self.space = false;
        if is_first {
            self.begin_line();
            self.out.push('|');
        } else {
            self.out.push_str(CELL_SEPARATOR.trim_end());
        }
        self.space = true;
    }

    pub(super) fn end_row(&mut self) {
        let Some(table) = self.tables.last_mut() else { return };
        let cells = table.cells.take().unwrap_or_default();
        if cells == 0 || table.is_layout {
            return self.gap(TextGap::Line);
        }
        table.rows += 1;
        let is_first = table.rows == 1;
        self.close_inlines();
        self.out.push_str(CELL_SEPARATOR.trim_end());
        if is_first {
            self.gap = TextGap::Line;
            self.begin_line();
            self.out.push('|');
            self.out.push_str(&"---|".repeat(cells));
        }
        self.gap(TextGap::Line);
    }

    fn is_in_cell(&self) -> bool {
        self.tables.last().is_some_and(|table| !table.is_layout && table.cells.is_some_and(|cells| cells > 0))
    }

    /// Writes what comes before a word: the gap, the beginning of the line, and what begins with the word.
    fn begin_text(&mut self) {
        if self.gap != TextGap::None || self.out.is_empty() || self.marker.is_some() {
            self.begin_line();
        } else if self.space && !self.out.ends_with(['\n', ' ']) {
            self.out.push(' ');
        }
        self.space = false;
        for open in self.inlines.iter_mut().filter(|open| !open.is_written) {
            open.is_written = true;
            open.inline.write_begin(&mut self.out);
        }
    }

    fn begin_line(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        if !self.out.is_empty() {
            self.out.push('\n');
            if gap == TextGap::Paragraph {
                let shared = self.quotes.min(self.last_quotes).min(MAX_INDENT);
                self.out.push_str("> ".repeat(shared).trim_end());
                self.out.push('\n');
            }
        }
        self.last_quotes = self.quotes;
        self.out.push_str(&"> ".repeat(self.quotes.min(MAX_INDENT)));
        let marker = self.marker.take();
        let outer = match marker {
            Some(_) => self.lists.len().saturating_sub(1),
            None => self.lists.len(),
        };
        for list in self.lists.iter().take(outer.min(MAX_INDENT)) {
            self.out.push_str(if list.is_some() { "   " } else { "  " });
        }
        self.out.push_str(marker.as_deref().unwrap_or_default());
        if self.heading > 0 {
            self.out.push_str(&"#".repeat(self.heading));
            self.out.push(' ');
        }
        self.space = false;
    }

    /// Ends what goes over the end of a paragraph. Marks begin again in the next one, links do not.
    fn close_inlines(&mut self) {
        for open in self.inlines.iter_mut().rev().filter(|open| open.is_written) {
            open.is_written = false;
            open.inline.write_end(&mut self.out);
            if let Inline::Link(target) = &mut open.inline {
                target.clear();
            }
        }
    }
}

impl Inline {
    fn write_begin(&self, out: &mut String) {
        match self {
            Self::Mark(mark) => out.push_str(mark),
            Self::Link(target) if target.is_empty() => {}
            Self::Link(_) => out.push('['),
        }
    }

    fn write_end(&self, out: &mut String) {
        match self {
            Self::Mark(mark) => out.push_str(mark),
            Self::Link(target) if target.is_empty() => {}
            Self::Link(target) => {
                out.push_str("](");
                out.push_str(target);
                out.push(')');
            }
        }
    }
}
