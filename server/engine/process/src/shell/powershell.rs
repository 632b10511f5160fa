//! How PowerShell is called: to run a command, and to say how its own parser reads one.
//!
//! Rule: a command is data, and never a part of a script of ours: it lies in a file or in a variable. Our scripts come as
//! one encoded argument, so that no quoting matters, and no profile of the user runs before them.

use std::io::{self, Write};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tempfile::{NamedTempFile, TempPath};

use super::helper;
use crate::programs;
use crate::sandbox::Sandbox;
use kode_base::command_shell::CommandShell;
use kode_base::powershell::{self, SyntaxReading};

/// The script that runs the command in the file of [`SCRIPT`]: it writes the last folder to the file of [`REPORT`], and its exit
/// code is 0 when the last statement succeeded, otherwise that of the last program that failed, or 1.
const RUN: &str = include_str!("powershell/run.ps1");
/// The script that prints how PowerShell's parser reads the text in [`PARSED`].
const PARSE: &str = include_str!("powershell/parse.ps1");
/// The variable that names the file with the command.
pub(super) const SCRIPT: &str = "KODE_LS_SCRIPT";
/// The variable that names the file for the last folder.
pub(super) const REPORT: &str = "KODE_LS_REPORT";
/// The variable with the text to parse, as base64 of UTF-8.
const PARSED: &str = "KODE_LS_PARSED";
/// The options of every call. Without a format in text, Windows PowerShell prints its errors as XML.
const OPTIONS: [&str; 8] = [
    "-NoLogo",
    "-NoProfile",
    "-NonInteractive",
    "-InputFormat",
    "Text",
    "-OutputFormat",
    "Text",
    "-EncodedCommand",
];
/// The longest command that is parsed, in bytes: Windows has variables of 32,767 characters.
const MAX_PARSED: usize = 20_000;
/// How long the parser may take.
const PARSE_TIME: Duration = Duration::from_secs(5);
/// The most bytes of its answer.
const MAX_ANSWER: usize = 4 << 20;

/// The arguments with which PowerShell runs a command.
pub(super) fn arguments() -> Vec<String> {
    called(RUN)
}

fn called(script: &str) -> Vec<String> {
    let bytes: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
    OPTIONS.iter().map(|option| (*option).to_owned()).chain([STANDARD.encode(bytes)]).collect()
}

/// A file with a command, for as long as it runs.
pub(super) fn script_file(command: &str, sandbox: Option<&Sandbox>) -> io::Result<TempPath> {
    let folder = super::scratch(sandbox);
    let mut file = NamedTempFile::with_prefix_in("kode-ls-", folder)?;
    file.write_all(command.as_bytes())?;
    Ok(file.into_temp_path())
}

/// How PowerShell's own parser reads a command, or why that is not known. Nothing of the command runs.
pub async fn reading(command: &str) -> SyntaxReading {
    if let Some(objection) = powershell::objection(command) {
        return SyntaxReading::failed(objection);
    }
    match parse(command).await {
        Ok(answer) => SyntaxReading::of_answer(command, &answer),
        Err(reason) => SyntaxReading::failed(reason),
    }
}

/// The answer of the script `parse.ps1`.
async fn parse(command: &str) -> Result<String, String> {
    let program = programs::shell(CommandShell::PowerShell).ok_or("PowerShell is not there any more")?;
    let program = program.to_str().ok_or("the path of PowerShell is not text")?;
    if command.len() > MAX_PARSED {
        return Err(format!("it has more than {MAX_PARSED} bytes"));
    }
    let arguments = called(PARSE);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = STANDARD.encode(command);
    let answer = helper::output((program, &arguments), &[(PARSED, &text)], PARSE_TIME, MAX_ANSWER).await;
    answer.map_err(|failure| format!("its parser {failure}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_ours_come_as_one_argument_that_every_system_takes() {
        for script in [RUN, PARSE] {
            let arguments = called(script);
            let (encoded, options) = arguments.split_last().unwrap();
            assert_eq!(options.last().map(String::as_str), Some("-EncodedCommand"));
            let bytes = STANDARD.decode(encoded).unwrap();
            let units: Vec<u16> =
                bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            assert_eq!(String::from_utf16(&units).unwrap(), script);
            // Windows takes command lines of 32,767 characters.
            assert!(script.is_ascii() && encoded.len() < 30_000, "{}", encoded.len());
        }
        assert!(RUN.contains(&format!("$env:{SCRIPT}")) && RUN.contains(&format!("$env:{REPORT}")));
        assert!(PARSE.contains(&format!("$env:{PARSED}")));
    }

    #[tokio::test]
    async fn a_command_that_is_not_parsed_says_why() {
        let reason = |reading: SyntaxReading| reading.nodes.unwrap_err();
        assert!(reason(reading("using module x").await).contains("load modules"));
    }
}
