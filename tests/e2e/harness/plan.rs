//! The requests of the scripted model for an exercise: distorted requests, and the right ones behind those that are to be
//! refused.
//!
//! Rule: all of it follows from the exercise, its tool and its place in the list. A right request is never sent before the distorted
//! one was refused with the passage that it needs.

use kode_e2e::distortion::{Dice, Distortion, Expected};
use kode_e2e::{Script, Typing, call, say};
use serde_json::{Value, json};

use crate::harness::exercise::{Exercise, Passage};
use crate::harness::user::{TOP, comment_line, line_behind, with_comments};

/// Rolls of the dice until a distortion fits a passage.
const ROLLS: u64 = 8;

/// The comment that makes a passage stale.
const STALE: usize = 3;

/// The distortions that `Edit` and `MultiEdit` undo.
const HARMLESS: &[Distortion] = &[
    Distortion::Backslashes,
    Distortion::Dashes,
    Distortion::Entities,
    Distortion::Quotes,
    Distortion::TabsAndSpaces,
    Distortion::ShiftAll,
    Distortion::NoBreakSpaces,
    Distortion::LineNumbers,
    Distortion::TrailingBlanks,
    Distortion::LineBreaks,
    Distortion::ByteOrderMark,
    Distortion::Verbatim,
];
/// The distortions that `apply_patch` undoes.
const HARMLESS_IN_PATCHES: &[Distortion] = &[
    Distortion::Quotes,
    Distortion::TabsAndSpaces,
    Distortion::ShiftAll,
    Distortion::TrailingBlanks,
    Distortion::Verbatim,
];
/// The distortions that `Write` undoes.
const HARMLESS_IN_WHOLE: &[Distortion] =
    &[Distortion::LineBreaks, Distortion::ByteOrderMark, Distortion::Verbatim];
/// The ambiguous distortions.
const HARMFUL: &[Distortion] =
    &[Distortion::Elision, Distortion::ShiftSome, Distortion::MissingLine, Distortion::Stale];

/// A tool that changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditTool {
    Edit,
    MultiEdit,
    Write,
    ApplyPatch,
}

impl EditTool {
    pub(super) const ALL: [Self; 4] = [Self::Edit, Self::MultiEdit, Self::Write, Self::ApplyPatch];

    fn harmless(self) -> &'static [Distortion] {
        match self {
            Self::Edit | Self::MultiEdit => HARMLESS,
            Self::Write => HARMLESS_IN_WHOLE,
            Self::ApplyPatch => HARMLESS_IN_PATCHES,
        }
    }
}

/// One prompt, and the call that the model answers with.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) prompt: String,
    /// Whether the model reads the file before.
    pub(super) reads: bool,
    /// The user's typing between the model's reading and its call.
    pub(super) meanwhile: Meanwhile,
    pub(super) call: (&'static str, Value),
    pub(super) expected: Expected,
    /// The distortions of its passages.
    pub(super) distortions: Vec<Distortion>,
    /// The lines that a refusal has to show: the lines of the passage as they stand there.
    pub(super) shown: Vec<String>,
    /// The request after a refusal.
    pub(super) retry: Option<Box<Attempt>>,
}

/// The user's typing between the model's reading and its call.
#[derive(Clone, Debug)]
pub(super) enum Meanwhile {
    /// Nothing: the model knows the current text.
    Nothing,
    /// The next characters of a comment.
    Characters,
    /// All of the comment at the top.
    TopComment,
    /// A line within the passage.
    Line(Vec<Typing>),
}

/// How an exercise is solved.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) tool: EditTool,
    pub(super) attempts: Vec<Attempt>,
    /// The solution, with what the user has typed into passages, but without the other comments.
    pub(super) solution: String,
    /// The lines that the user types into passages.
    pub(super) lines: Vec<String>,
}

/// A passage as a request has it.
#[derive(Clone, Debug)]
struct PassageRequest {
    old: String,
    new: String,
    distortion: Distortion,
    expected: Expected,
}

/// A request that leaves a doubt, and the number of its passage.
#[derive(Debug)]
struct HarmfulRequest {
    at: usize,
    request: PassageRequest,
}

/// Makes plans, each distortion as often as it fits.
#[derive(Debug, Default)]
pub(super) struct Planner {
    used: Vec<Distortion>,
}

impl Planner {
    /// How an exercise is solved, by the tool whose turn it is.
    pub(super) fn plan(&mut self, exercise: &Exercise, number: usize) -> Plan {
        let tool = EditTool::ALL[number % EditTool::ALL.len()];
        let mut dice = Dice::new(number as u64 + 1);
        if tool == EditTool::Write {
            let solution = exercise.solved(|passage| passage.new.clone());
            return Plan {
                tool,
                attempts: vec![self.whole(exercise, &solution)],
                solution,
                lines: Vec::new(),
            };
        }
        // Half of the calls with several passages are right at once.
        let may_fail = tool == EditTool::Edit || (number / EditTool::ALL.len()).is_multiple_of(2);
        let harmful = may_fail.then(|| self.harmful(exercise, tool, number, &mut dice)).flatten();
        let is_stale =
            harmful.as_ref().is_some_and(|harmful| harmful.request.distortion == Distortion::Stale);
        let right = RightRequests {
            exercise,
            stale: harmful.as_ref().filter(|_| is_stale).map(|harmful| harmful.at),
        };
        let requests: Vec<PassageRequest> = (0..exercise.passages.len())
            .map(|at| match &harmful {
                Some(harmful) if harmful.at == at => right.request(at),
                _ => self
                    .choose(exercise, at, tool.harmless(), tool, &mut dice)
                    .unwrap_or_else(|| right.request(at)),
            })
            .collect();
        let attempts = match tool {
            EditTool::Edit => right.one_by_one(&requests, harmful.as_ref()),
            _ => vec![right.at_once(tool, &requests, harmful.as_ref())],
        };
        Plan {
            tool,
            attempts,
            solution: right.solution(),
            lines: right.stale.iter().map(|_| right.line()).collect(),
        }
    }

    /// The request that leaves a doubt, for the first passage from `number` on that has one.
    fn harmful(
        &mut self,
        exercise: &Exercise,
        tool: EditTool,
        number: usize,
        dice: &mut Dice,
    ) -> Option<HarmfulRequest> {
        let count = exercise.passages.len();
        (0..count).map(|at| (number + at) % count).find_map(|at| {
            let request = self.choose(exercise, at, HARMFUL, tool, dice)?;
            Some(HarmfulRequest { at, request })
        })
    }

    /// A whole text that the user makes stale, and then one that has what the user has typed.
    fn whole(&mut self, exercise: &Exercise, solution: &str) -> Attempt {
        let least = |kind: &&Distortion| self.used.iter().filter(|used| used == kind).count();
        let distortion = *HARMLESS_IN_WHOLE.iter().min_by_key(least).unwrap();
        self.used.push(distortion);
        let text = with_comments(exercise, solution, &[TOP]);
        let text = match distortion {
            Distortion::LineBreaks => text.replace('\n', "\r\n"),
            Distortion::ByteOrderMark => format!("\u{feff}{text}"),
            _ => text,
        };
        let write = |prompt: &str, content: &str, meanwhile, expected, distortion| Attempt {
            prompt: format!("{} {prompt}", exercise.name),
            reads: true,
            meanwhile,
            call: ("Write", json!({ "file_path": path(exercise), "content": content })),
            expected,
            distortions: vec![distortion],
            shown: Vec::new(),
            retry: None,
        };
        let retry = write("whole again", &text, Meanwhile::Nothing, Expected::Applied, distortion);
        let mut first = write("whole", solution, Meanwhile::TopComment, Expected::Refused, Distortion::Stale);
        first.retry = Some(Box::new(retry));
        first
    }

    /// The request for a passage, with the distortion that fits it and was used least.
    fn choose(
        &mut self,
        exercise: &Exercise,
        at: usize,
        kinds: &[Distortion],
        tool: EditTool,
        dice: &mut Dice,
    ) -> Option<PassageRequest> {
        let passage = &exercise.passages[at];
        let mut kinds: Vec<Distortion> = kinds.to_vec();
        kinds.sort_by_key(|kind| self.used.iter().filter(|used| *used == kind).count());
        let request = kinds.into_iter().find_map(|kind| {
            if kind == Distortion::Stale {
                return passage.may_be_stale(exercise).then(|| PassageRequest {
                    old: passage.old.join("\n"),
                    new: passage.new.join("\n"),
                    distortion: kind,
                    expected: Expected::Refused,
                });
            }
            if kind == Distortion::Elision && tool == EditTool::ApplyPatch {
                return None;
            }
            (0..ROLLS).find_map(|_| distorted(exercise, passage, kind, dice))
        })?;
        self.used.push(request.distortion);
        Some(request)
    }
}

/// The right requests for the passages of an exercise.
struct RightRequests<'a> {
    exercise: &'a Exercise,
    /// The passage in which the user types a line.
    stale: Option<usize>,
}

impl RightRequests<'_> {
    /// The line that the user types behind the first line of the passage.
    fn line(&self) -> String {
        comment_line(self.exercise, STALE)
    }

    fn with_line(&self, at: usize, lines: &[String]) -> Vec<String> {
        let mut lines = lines.to_vec();
        if self.stale == Some(at) {
            lines.insert(1, self.line());
        }
        lines
    }

    fn request(&self, at: usize) -> PassageRequest {
        let Passage { old, new, .. } = &self.exercise.passages[at];
        PassageRequest {
            old: self.with_line(at, old).join("\n"),
            new: self.with_line(at, new).join("\n"),
            distortion: Distortion::Verbatim,
            expected: Expected::Applied,
        }
    }

    fn solution(&self) -> String {
        let at = |passage: &Passage| {
            self.exercise.passages.iter().position(|known| known.at == passage.at).unwrap()
        };
        self.exercise.solved(|passage| self.with_line(at(passage), &passage.new))
    }

    /// The user's typing before the call with this request.
    fn meanwhile(&self, request: &PassageRequest, at: usize) -> Meanwhile {
        match request.distortion {
            Distortion::Stale => {
                Meanwhile::Line(line_behind(self.exercise, &self.exercise.passages[at].old[0], &self.line()))
            }
            Distortion::Verbatim | Distortion::MissingLine => Meanwhile::Characters,
            _ => Meanwhile::Nothing,
        }
    }

    /// A call for each passage; the right one after the refusal has no other source than the refusal.
    fn one_by_one(&self, requests: &[PassageRequest], harmful: Option<&HarmfulRequest>) -> Vec<Attempt> {
        let one = |name: &str, request: &PassageRequest, meanwhile| {
            attempt(self.exercise, name, EditTool::Edit, std::slice::from_ref(request), meanwhile)
        };
        let attempts = requests.iter().enumerate().map(|(at, wanted)| {
            let Some(harmful) = harmful.filter(|harmful| harmful.at == at) else {
                return one(&format!("{at}"), wanted, self.meanwhile(wanted, at));
            };
            let retry = one(&format!("{at} again"), &self.request(at), Meanwhile::Nothing);
            let first = one(&format!("{at}"), &harmful.request, self.meanwhile(&harmful.request, at));
            self.with_retry(first, at, Attempt { reads: false, ..retry })
        });
        attempts.collect()
    }

    /// One call for all passages; after a refusal the model reads the file once more.
    fn at_once(
        &self,
        tool: EditTool,
        requests: &[PassageRequest],
        harmful: Option<&HarmfulRequest>,
    ) -> Attempt {
        let is_right = requests.iter().all(|request| request.distortion == Distortion::Verbatim);
        let meanwhile = if is_right { Meanwhile::Characters } else { Meanwhile::Nothing };
        let all = |name: &str| attempt(self.exercise, name, tool, requests, meanwhile.clone());
        let Some(HarmfulRequest { at, request }) = harmful else { return all("all") };
        let mut doubtful: Vec<PassageRequest> = (0..requests.len()).map(|at| self.request(at)).collect();
        doubtful[*at] = request.clone();
        let first = attempt(self.exercise, "all", tool, &doubtful, self.meanwhile(request, *at));
        self.with_retry(first, *at, all("all again"))
    }

    fn with_retry(&self, first: Attempt, at: usize, retry: Attempt) -> Attempt {
        let shown = self.request(at).old.lines().map(str::to_owned).collect();
        Attempt { shown, retry: Some(Box::new(retry)), ..first }
    }
}

impl Passage {
    /// Whether a comment may stand behind its first line, before and after, and the line is unique.
    fn may_be_stale(&self, exercise: &Exercise) -> bool {
        let opens = |lines: &[String]| lines.len() > 1 && lines[0].ends_with([':', '{']);
        let first = &self.old[0];
        opens(&self.old) && opens(&self.new) && exercise.stub.matches(first.as_str()).count() == 1
    }
}

/// A passage with this distortion; `None` when the dice are against it.
fn distorted(
    exercise: &Exercise,
    passage: &Passage,
    kind: Distortion,
    dice: &mut Dice,
) -> Option<PassageRequest> {
    let end = passage.at + passage.old.join("\n").len();
    let (before, after) = (&exercise.stub[..passage.at], &exercise.stub[end..]);
    let request = kind.apply(&exercise.stub, before, &passage.old, &passage.new, after, dice)?;
    // A curly quote that the passage does not have may be meant as it is.
    let is_doubtful =
        |letter: char| "\u{201c}\u{201d}\u{2019}".contains(letter) && !request.old.contains(letter);
    // The file is what it is: only the request may be distorted.
    let is_fit =
        request.text == exercise.stub && !(kind == Distortion::Quotes && request.new.contains(is_doubtful));
    is_fit.then_some(PassageRequest {
        old: request.old,
        new: request.new,
        distortion: kind,
        expected: request.expected,
    })
}

fn path(exercise: &Exercise) -> String {
    format!("{{{{cwd}}}}/{}", exercise.file())
}

/// One call with these passages.
fn attempt(
    exercise: &Exercise,
    name: &str,
    tool: EditTool,
    requests: &[PassageRequest],
    meanwhile: Meanwhile,
) -> Attempt {
    let edit = |request: &PassageRequest| json!({ "old_string": request.old, "new_string": request.new });
    let call = match tool {
        EditTool::Edit => {
            let mut input = edit(&requests[0]);
            input["file_path"] = json!(path(exercise));
            ("Edit", input)
        }
        EditTool::MultiEdit => {
            let edits: Vec<Value> = requests.iter().map(edit).collect();
            ("MultiEdit", json!({ "file_path": path(exercise), "edits": edits }))
        }
        EditTool::ApplyPatch => {
            let sections: String = requests.iter().map(section).collect();
            let file = exercise.file();
            let patch = format!("*** Begin Patch\n*** Update File: {file}\n{sections}*** End Patch");
            ("apply_patch", json!({ "input": patch }))
        }
        EditTool::Write => unreachable!("a whole file has no passages"),
    };
    let doubtful =
        requests.iter().map(|request| request.expected).find(|expected| *expected != Expected::Applied);
    Attempt {
        prompt: format!("{} {name}", exercise.name),
        reads: true,
        meanwhile,
        call,
        expected: doubtful.unwrap_or(Expected::Applied),
        distortions: requests.iter().map(|request| request.distortion).collect(),
        shown: Vec::new(),
        retry: None,
    }
}

/// A section of a patch: equal lines at both ends as context.
fn section(request: &PassageRequest) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (request.old.split('\n').collect(), request.new.split('\n').collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let mut section = "@@\n".to_owned();
    let parts = [
        (' ', &old[..head]),
        ('-', &old[head..old.len() - tail]),
        ('+', &new[head..new.len() - tail]),
        (' ', &old[old.len() - tail..]),
    ];
    for (sign, lines) in parts {
        lines.iter().for_each(|line| section.push_str(&format!("{sign}{line}\n")));
    }
    section
}

impl Attempt {
    /// The gate at which the model's call is held while the user types.
    pub(super) fn gate(&self) -> Option<String> {
        (!matches!(self.meanwhile, Meanwhile::Nothing)).then(|| self.prompt.replace(' ', "-"))
    }

    /// Adds the answers to its prompt, and to that of the retry.
    fn add_to(&self, script: Script, exercise: &Exercise) -> Script {
        let (name, input) = &self.call;
        let step = call(name, input.clone());
        let step = match self.gate() {
            Some(gate) => step.gate(&gate, 0),
            None => step,
        };
        let read = self.reads.then(|| call("Read", json!({ "file_path": path(exercise) })));
        let steps = read.into_iter().chain([step, say("Tried.")]);
        let script = script.when(&format!("^{}$", self.prompt), steps);
        match &self.retry {
            Some(retry) => retry.add_to(script, exercise),
            None => script,
        }
    }
}

impl Plan {
    /// Adds the answers of the model to a script, and a last check the file.
    pub(super) fn add_to(&self, script: Script, exercise: &Exercise) -> Script {
        let look = [call("Read", json!({ "file_path": path(exercise) })), say("Seen.")];
        let script = self.attempts.iter().fold(script, |script, attempt| attempt.add_to(script, exercise));
        script.when(&format!("^{} look$", exercise.name), look)
    }
}
