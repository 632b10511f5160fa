//! How many words the braces of a word unfold into.
//!
//! Rule: an estimate that is never too low for what a shell unfolds; a shell makes all of them before it runs anything.

/// How many words one word may unfold into before the line is not understood.
pub(super) const MAX_WORDS: u64 = 10_000;
/// How deep braces may lie in braces.
const MAX_DEPTH: usize = 32;

/// How many words a word unchanged in a line unfolds into.
pub(super) fn words(source: &str) -> u64 {
    if !source.contains('{') {
        return 1;
    }
    let letters: Vec<char> = source.chars().collect();
    let mut at = 0;
    product(&letters, &mut at, 0)
}

/// The words of a text up to the comma or brace that ends it.
fn product(letters: &[char], at: &mut usize, depth: usize) -> u64 {
    let mut count: u64 = 1;
    while let Some(letter) = letters.get(*at) {
        match letter {
            '\\' => *at += 2,
            '\'' => {
                let length = letters[*at + 1..].iter().position(|letter| *letter == '\'');
                *at += length.map_or(letters.len(), |length| length + 2);
            }
            '{' if depth < MAX_DEPTH => {
                *at += 1;
                count = count.saturating_mul(braces(letters, at, depth + 1));
            }
            // Deeper than anybody writes: the shell may make any number of it.
            '{' => return u64::MAX,
            ',' | '}' if depth > 0 => return count,
            _ => *at += 1,
        }
    }
    count
}

/// The words in braces, from behind the first to behind the last.
fn braces(letters: &[char], at: &mut usize, depth: usize) -> u64 {
    if let Some((count, end)) = range(letters, *at) {
        *at = end;
        return count;
    }
    let mut sum: u64 = 0;
    loop {
        sum = sum.saturating_add(product(letters, at, depth));
        match letters.get(*at) {
            Some(',') => *at += 1,
            Some(_) => {
                *at += 1;
                return sum;
            }
            None => return sum,
        }
    }
}

/// `1..9`, `a..z` or `1..9..2` up to the closing brace, with how many words it is and where it ends.
fn range(letters: &[char], start: usize) -> Option<(u64, usize)> {
    let length = letters[start..].iter().position(|letter| *letter == '}')?;
    let text: String = letters[start..start + length].iter().collect();
    let mut parts = text.split("..");
    let (first, last) = (parts.next()?, parts.next()?);
    let step = parts.next().map_or(1, |step| step.parse::<i128>().map_or(1, |step| step.abs().max(1)));
    let number = |text: &str| {
        let letter = || {
            text.chars()
                .next()
                .filter(|_| text.chars().count() == 1)
                .map(|letter| i128::from(u32::from(letter)))
        };
        text.parse::<i128>().ok().or_else(letter)
    };
    let count = (number(last)? - number(first)?).abs() / step + 1;
    Some((u64::try_from(count).unwrap_or(u64::MAX), start + length + 1))
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn braces_unfold_into_lists_ranges_and_products() {
        for (source, count) in [
            ("plain", 1),
            ("{a,b,c}", 3),
            ("x{a,{b,c}}y", 3),
            ("{1..9}", 9),
            ("{9..1..2}", 5),
            ("{a..e}", 5),
            ("{1..10}{a,b}", 20),
            ("{1..999999999}", 999_999_999),
            ("'{1..9}'", 1),
            ("\\{1..9}", 1),
            ("{", 1),
            ("{a", 1),
            ("}", 1),
        ] {
            assert_eq!(words(source), count, "{source}");
        }
        assert_eq!(words(&"{".repeat(100)), u64::MAX);
        assert_eq!(words(&"{1..9999}".repeat(100)), u64::MAX);
    }
}
