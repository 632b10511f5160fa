//! The cases: a passage of a file, what should stand there, and the request as a model sends it.
//!
//! Rule: a case follows from the seed and its number alone. The passage is in its file once, byte for byte.

use std::ops::Range;

use kode_e2e::distortion::{Dice, Distortion, Expected, Request, with_other_word};

/// Lines of the longest passage.
const MAX_HEIGHT: u64 = 12;
/// Passages that are tried until one can be distorted.
const TRIES: usize = 400;

/// One case.
pub(crate) struct Case {
    /// The file as it is when the request arrives.
    pub(crate) text: String,
    /// The passage as the request has it.
    pub(crate) old: String,
    /// The expected text, as the request has it.
    pub(crate) new: String,
    /// The file as it should be afterwards.
    pub(crate) intended: String,
    /// The lines of the passage in `text`, from 1.
    pub(crate) lines: Range<usize>,
    pub(crate) distortion: Distortion,
    pub(crate) expected: Expected,
}

/// `count` cases, by turns of all distortions and languages.
pub(crate) fn cases(sources: &[(&str, Vec<String>)], count: usize, seed: u64) -> Vec<Case> {
    let kinds = Distortion::ALL.len();
    (0..count)
        .map(|number| {
            let distortion = Distortion::ALL[number % kinds];
            let mut dice = Dice::new(seed ^ (number as u64).wrapping_mul(0x0100_0000_01b3));
            // Where a language has hardly a passage of that kind, such as doubled backslashes, the next one has its turn.
            (0..TRIES * sources.len())
                .find_map(|tried| {
                    let (_, files) = &sources[(number / kinds + tried / TRIES) % sources.len()];
                    case(&files[dice.index(files.len())], distortion, &mut dice)
                })
                .unwrap_or_else(|| panic!("no passage for {}", distortion.name()))
        })
        .collect()
}

fn case(text: &str, distortion: Distortion, dice: &mut Dice) -> Option<Case> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let height = usize::try_from(dice.roll(MAX_HEIGHT)).unwrap() + 1;
    let start = dice.index(lines.len().checked_sub(height)? + 1);
    let passage = lines[start..start + height].concat();
    let old = passage.trim_end_matches('\n');
    let ends = [lines[start], lines[start + height - 1]];
    if text.contains('\r')
        || ends.iter().any(|line| line.trim().is_empty())
        || text.matches(old).nth(1).is_some()
    {
        return None;
    }
    let old: Vec<String> = old.split('\n').map(str::to_owned).collect();
    let new = changed(&old, dice)?;
    let before = lines[..start].concat();
    let after =
        format!("{}{}", &passage[passage.trim_end_matches('\n').len()..], lines[start + height..].concat());
    let Request { text, old: asked, new: wanted, intended, expected } =
        distortion.apply(text, &before, &old, &new, &after, dice)?;
    if intended == text && expected != Expected::Refused || asked.is_empty() {
        return None;
    }
    Some(Case {
        text,
        old: asked,
        new: wanted,
        intended,
        lines: start + 1..start + height + 1,
        distortion,
        expected,
    })
}

/// The passage as it should be: a word changed, a line inserted or removed, or several of these.
fn changed(old: &[String], dice: &mut Dice) -> Option<Vec<String>> {
    let mut new = old.to_vec();
    for _ in 0..=dice.roll(3) {
        let at = dice.index(new.len());
        match dice.roll(4) {
            0 if new.len() > 1 => {
                new.remove(at);
            }
            1 => {
                let line = with_other_word(&new[at], dice)?;
                new.insert(at + 1, line);
            }
            _ => new[at] = with_other_word(&new[at], dice)?,
        }
    }
    (new != old && new.iter().any(|line| !line.trim().is_empty())).then_some(new)
}
