//! The commands of PowerShell whose parameters are well known.
//!
//! Rule: a command is listed as one that only looks for the parameters listed alone; any other parameter makes its effect unknown. Each
//! alias has one meaning; those that a system other than Windows has as programs count on Windows alone.

/// The known facts about a command.
#[derive(Debug)]
pub(super) struct Cmdlet {
    pub name: &'static str,
    /// Its aliases on every system.
    pub aliases: &'static [&'static str],
    /// Its aliases on Windows.
    pub on_windows: &'static [&'static str],
    pub effect: CmdletEffect,
    /// The meaning of arguments without a parameter, in their order.
    pub positional: &'static [ArgumentUse],
    /// Whether the last of them repeats.
    pub repeats: bool,
    pub parameters: &'static [(&'static str, ArgumentUse)],
    /// The effect on what comes through the pipeline.
    pub pipeline: PipelineUse,
}

/// The effect of a call with listed parameters only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CmdletEffect {
    Looks,
    Edits,
    /// It changes the folder of the commands after it.
    Moves,
    /// More than that.
    Other,
    /// More than that, and its arguments are commands: a rule for a prefix does not cover it.
    Runs,
}

/// The meaning of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentUse {
    /// Paths that are read, where `*`, `?` and `[` match others.
    Read,
    /// Paths that are written, likewise.
    Write,
    /// A path that is read, letter for letter.
    ReadLiteral,
    /// A path that is written, letter for letter.
    WriteLiteral,
    /// Any value.
    Text,
    /// A block of commands that is run.
    Block,
    /// No value follows.
    Switch,
}

/// The effect on what comes through the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipelineUse {
    /// It takes nothing, or values only.
    Values,
    /// It takes paths, and files that commands before it have listed; it lists what it takes.
    Lists,
    /// It takes paths and files, and gives contents.
    Reads,
    /// It takes text to search, and files to read.
    Searches,
    /// It takes paths and files, which it writes.
    Writes,
    /// It gives on what it takes.
    Passes,
}

use ArgumentUse::{Block, Read, ReadLiteral, Switch, Text, Write, WriteLiteral};
use CmdletEffect::{Edits, Looks, Moves, Other, Runs};
use PipelineUse::{Lists, Passes, Reads, Searches, Values, Writes};

/// Parameters of every command.
pub(super) const COMMON: [(&str, ArgumentUse); 6] = [
    ("Verbose", Switch),
    ("Debug", Switch),
    ("ErrorAction", Text),
    ("WarningAction", Text),
    ("InformationAction", Text),
    ("ProgressAction", Text),
];
/// Short names of parameters that are no beginning of theirs.
pub(super) const SHORT: [(&str, &str); 8] = [
    ("ea", "ErrorAction"),
    ("wa", "WarningAction"),
    ("pspath", "LiteralPath"),
    ("lp", "LiteralPath"),
    ("ad", "Directory"),
    ("af", "File"),
    ("first", "TotalCount"),
    ("head", "TotalCount"),
];

type Parameters = &'static [(&'static str, ArgumentUse)];

const COMPARISONS: Parameters = &[
    ("Property", Text),
    ("Value", Text),
    ("FilterScript", Text),
    ("InputObject", Text),
    ("EQ", Switch),
    ("NE", Switch),
    ("GT", Switch),
    ("GE", Switch),
    ("LT", Switch),
    ("LE", Switch),
    ("Like", Switch),
    ("NotLike", Switch),
    ("Match", Switch),
    ("NotMatch", Switch),
    ("Contains", Switch),
    ("NotContains", Switch),
    ("In", Switch),
    ("NotIn", Switch),
    ("Is", Switch),
    ("IsNot", Switch),
    ("CEQ", Switch),
    ("CNE", Switch),
    ("CLike", Switch),
    ("CMatch", Switch),
    ("Not", Switch),
];
const FILES: Parameters = &[
    ("Path", Read),
    ("LiteralPath", ReadLiteral),
    ("Filter", Text),
    ("Include", Text),
    ("Exclude", Text),
    ("Force", Switch),
];
const LISTING: Parameters = &[
    ("Path", Read),
    ("LiteralPath", ReadLiteral),
    ("Filter", Text),
    ("Include", Text),
    ("Exclude", Text),
    ("Force", Switch),
    ("Recurse", Switch),
    ("Depth", Text),
    ("Name", Switch),
    ("File", Switch),
    ("Directory", Switch),
    ("Hidden", Switch),
    ("ReadOnly", Switch),
    ("System", Switch),
    ("Attributes", Text),
];
const CONTENT: Parameters = &[
    ("Path", Read),
    ("LiteralPath", ReadLiteral),
    ("Filter", Text),
    ("Include", Text),
    ("Exclude", Text),
    ("Force", Switch),
    ("TotalCount", Text),
    ("Tail", Text),
    ("Raw", Switch),
    ("Encoding", Text),
    ("ReadCount", Text),
    ("Delimiter", Text),
    ("AsByteStream", Switch),
];
const SEARCH: Parameters = &[
    ("Pattern", Text),
    ("Path", Read),
    ("LiteralPath", ReadLiteral),
    ("InputObject", Text),
    ("SimpleMatch", Switch),
    ("CaseSensitive", Switch),
    ("AllMatches", Switch),
    ("Context", Text),
    ("List", Switch),
    ("Quiet", Switch),
    ("NotMatch", Switch),
    ("Include", Text),
    ("Exclude", Text),
    ("Encoding", Text),
    ("Raw", Switch),
    ("NoEmphasis", Switch),
];
const TEST: Parameters = &[
    ("Path", Read),
    ("LiteralPath", ReadLiteral),
    ("PathType", Text),
    ("IsValid", Switch),
    ("Filter", Text),
    ("Include", Text),
    ("Exclude", Text),
];
const SET_CONTENT: Parameters = &[
    ("Path", Write),
    ("LiteralPath", WriteLiteral),
    ("Value", Text),
    ("Encoding", Text),
    ("NoNewline", Switch),
    ("Force", Switch),
    ("AsByteStream", Switch),
];
const REMOVE: Parameters = &[
    ("Path", Write),
    ("LiteralPath", WriteLiteral),
    ("Recurse", Switch),
    ("Force", Switch),
    ("Filter", Text),
    ("Include", Text),
    ("Exclude", Text),
    ("Confirm", Switch),
    ("WhatIf", Switch),
];
const COPY: Parameters = &[
    ("Path", Read),
    ("LiteralPath", ReadLiteral),
    ("Destination", WriteLiteral),
    ("Recurse", Switch),
    ("Force", Switch),
    ("Filter", Text),
    ("Include", Text),
    ("Exclude", Text),
    ("PassThru", Switch),
];
const MOVE: Parameters = &[
    ("Path", Write),
    ("LiteralPath", WriteLiteral),
    ("Destination", WriteLiteral),
    ("Force", Switch),
    ("Filter", Text),
    ("Include", Text),
    ("Exclude", Text),
    ("PassThru", Switch),
];
const OUT_FILE: Parameters = &[
    ("FilePath", WriteLiteral),
    ("LiteralPath", WriteLiteral),
    ("Encoding", Text),
    ("Append", Switch),
    ("NoClobber", Switch),
    ("Width", Text),
    ("Force", Switch),
    ("NoNewline", Switch),
    ("InputObject", Text),
];
const FORMAT: Parameters = &[
    ("Property", Text),
    ("AutoSize", Switch),
    ("Wrap", Switch),
    ("HideTableHeaders", Switch),
    ("GroupBy", Text),
    ("InputObject", Text),
];
const ARCHIVE: Parameters = &[
    ("Path", Read),
    ("LiteralPath", ReadLiteral),
    ("DestinationPath", WriteLiteral),
    ("Force", Switch),
    ("Update", Switch),
    ("CompressionLevel", Text),
];
const WEB: Parameters = &[
    ("Uri", Text),
    ("OutFile", WriteLiteral),
    ("InFile", ReadLiteral),
    ("Method", Text),
    ("Headers", Text),
    ("Body", Text),
    ("UseBasicParsing", Switch),
    ("TimeoutSec", Text),
];
const ITEM: Parameters = &[("Path", Write), ("LiteralPath", WriteLiteral)];
const OBJECTS: Parameters = &[
    ("Property", Text),
    ("ExcludeProperty", Text),
    ("ExpandProperty", Text),
    ("First", Text),
    ("Last", Text),
    ("Skip", Text),
    ("SkipLast", Text),
    ("Unique", Switch),
    ("Index", Text),
    ("InputObject", Text),
];

const fn cmdlet(
    name: &'static str,
    aliases: &'static [&'static str],
    effect: CmdletEffect,
    positional: &'static [ArgumentUse],
    parameters: Parameters,
    pipeline: PipelineUse,
) -> Cmdlet {
    Cmdlet { name, aliases, on_windows: &[], effect, positional, repeats: false, parameters, pipeline }
}

/// The same with aliases on Windows.
const fn windows(on_windows: &'static [&'static str], cmdlet: Cmdlet) -> Cmdlet {
    Cmdlet { on_windows, ..cmdlet }
}

/// The same, the last of whose arguments without a parameter repeats.
const fn repeating(cmdlet: Cmdlet) -> Cmdlet {
    Cmdlet { repeats: true, ..cmdlet }
}

/// The known facts about the command of a name, which can be an alias; letter case does not matter.
pub(super) fn find(name: &str, is_windows: bool) -> Option<&'static Cmdlet> {
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    CMDLETS.iter().find(|cmdlet| {
        is(&cmdlet.name) || cmdlet.aliases.iter().any(&is) || is_windows && cmdlet.on_windows.iter().any(&is)
    })
}

// One line for each command.
#[rustfmt::skip]
const CMDLETS: &[Cmdlet] = &[
    windows(&["ls"], cmdlet("Get-ChildItem", &["gci", "dir"], Looks, &[Read, Text], LISTING, Lists)),
    cmdlet("Get-Item", &["gi"], Looks, &[Read], FILES, Lists),
    windows(&["cat"], cmdlet("Get-Content", &["gc", "type"], Looks, &[Read], CONTENT, Reads)),
    cmdlet("Select-String", &["sls"], Looks, &[Text, Read], SEARCH, Searches),
    cmdlet("Test-Path", &[], Looks, &[Read], TEST, Lists),
    cmdlet("Resolve-Path", &["rvpa"], Looks, &[Read], &[("Path", Read), ("LiteralPath", ReadLiteral), ("Relative", Switch)], Lists),
    cmdlet("Get-FileHash", &[], Looks, &[Read], &[("Path", Read), ("LiteralPath", ReadLiteral), ("Algorithm", Text)], Reads),
    cmdlet("Import-Csv", &["ipcsv"], Looks, &[Read, Text], &[("Path", Read), ("LiteralPath", ReadLiteral), ("Delimiter", Text), ("Header", Text), ("Encoding", Text)], Reads),
    cmdlet("Split-Path", &[], Looks, &[Text], &[("Path", Text), ("LiteralPath", Text), ("Parent", Switch), ("Leaf", Switch), ("LeafBase", Switch), ("Extension", Switch), ("Qualifier", Switch), ("NoQualifier", Switch), ("IsAbsolute", Switch)], Values),
    repeating(cmdlet("Join-Path", &[], Looks, &[Text], &[("Path", Text), ("ChildPath", Text), ("AdditionalChildPath", Text)], Values)),
    cmdlet("Get-Location", &["gl", "pwd"], Looks, &[], &[], Values),
    cmdlet("Get-Date", &[], Looks, &[Text], &[("Date", Text), ("Format", Text), ("UFormat", Text), ("AsUTC", Switch)], Values),
    cmdlet("Get-Command", &["gcm"], Looks, &[Text], &[("Name", Text), ("CommandType", Text), ("All", Switch)], Values),
    windows(&["man"], cmdlet("Get-Help", &["help"], Looks, &[Text], &[("Name", Text), ("Full", Switch), ("Detailed", Switch), ("Examples", Switch), ("Parameter", Text)], Values)),
    cmdlet("Get-Member", &["gm"], Looks, &[Text], &[("Name", Text), ("MemberType", Text), ("InputObject", Text), ("Force", Switch), ("Static", Switch)], Values),
    windows(&["ps"], cmdlet("Get-Process", &["gps"], Looks, &[Text], &[("Name", Text), ("Id", Text)], Values)),
    cmdlet("Get-Service", &["gsv"], Looks, &[Text], &[("Name", Text), ("DisplayName", Text)], Values),
    cmdlet("Get-Alias", &["gal"], Looks, &[Text], &[("Name", Text), ("Definition", Text)], Values),
    cmdlet("Measure-Object", &["measure"], Looks, &[Text], &[("Property", Text), ("InputObject", Text), ("Line", Switch), ("Word", Switch), ("Character", Switch), ("Sum", Switch), ("Average", Switch), ("Maximum", Switch), ("Minimum", Switch)], Values),
    windows(&["sort"], cmdlet("Sort-Object", &[], Looks, &[Text], &[("Property", Text), ("Descending", Switch), ("Unique", Switch), ("CaseSensitive", Switch), ("Top", Text), ("Bottom", Text), ("InputObject", Text)], Passes)),
    cmdlet("Where-Object", &["where", "?"], Looks, &[Text, Text], COMPARISONS, Passes),
    cmdlet("Select-Object", &["select"], Looks, &[Text], OBJECTS, Passes),
    cmdlet("Group-Object", &["group"], Looks, &[Text], &[("Property", Text), ("NoElement", Switch), ("CaseSensitive", Switch), ("InputObject", Text)], Values),
    repeating(cmdlet("ForEach-Object", &["foreach", "%"], Looks, &[Block], &[("Process", Block), ("Begin", Block), ("End", Block)], Values)),
    windows(&["diff", "compare"], cmdlet("Compare-Object", &[], Looks, &[Text, Text], &[("ReferenceObject", Text), ("DifferenceObject", Text), ("Property", Text), ("IncludeEqual", Switch), ("ExcludeDifferent", Switch), ("PassThru", Switch)], Values)),
    cmdlet("Format-Table", &["ft"], Looks, &[Text], FORMAT, Values),
    cmdlet("Format-List", &["fl"], Looks, &[Text], FORMAT, Values),
    cmdlet("Format-Wide", &["fw"], Looks, &[Text], FORMAT, Values),
    cmdlet("Out-String", &[], Looks, &[], &[("Width", Text), ("Stream", Switch), ("NoNewline", Switch), ("InputObject", Text)], Values),
    cmdlet("Out-Host", &["oh"], Looks, &[], &[("InputObject", Text)], Values),
    cmdlet("Out-Null", &[], Looks, &[], &[("InputObject", Text)], Values),
    windows(&["write"], repeating(cmdlet("Write-Output", &["echo"], Looks, &[Text], &[("InputObject", Text), ("NoEnumerate", Switch)], Values))),
    repeating(cmdlet("Write-Host", &[], Looks, &[Text], &[("Object", Text), ("ForegroundColor", Text), ("BackgroundColor", Text), ("NoNewline", Switch), ("Separator", Text)], Values)),
    cmdlet("Write-Error", &[], Looks, &[Text], &[("Message", Text)], Values),
    cmdlet("Write-Warning", &[], Looks, &[Text], &[("Message", Text)], Values),
    cmdlet("ConvertTo-Json", &[], Looks, &[Text], &[("InputObject", Text), ("Depth", Text), ("Compress", Switch)], Values),
    cmdlet("ConvertFrom-Json", &[], Looks, &[Text], &[("InputObject", Text), ("Depth", Text), ("AsHashtable", Switch)], Values),
    cmdlet("ConvertTo-Csv", &[], Looks, &[], &[("InputObject", Text), ("Delimiter", Text), ("NoTypeInformation", Switch)], Values),
    cmdlet("ConvertFrom-Csv", &[], Looks, &[Text], &[("InputObject", Text), ("Delimiter", Text), ("Header", Text)], Values),
    windows(&["sleep"], cmdlet("Start-Sleep", &[], Looks, &[Text], &[("Seconds", Text), ("Milliseconds", Text)], Values)),
    cmdlet("Set-Location", &["cd", "chdir", "sl"], Moves, &[ReadLiteral], &[("Path", ReadLiteral), ("LiteralPath", ReadLiteral)], Lists),
    cmdlet("Push-Location", &["pushd"], Moves, &[ReadLiteral], &[("Path", ReadLiteral), ("LiteralPath", ReadLiteral)], Lists),
    cmdlet("Pop-Location", &["popd"], Moves, &[], &[], Values),
    windows(&["sc"], cmdlet("Set-Content", &[], Edits, &[Write, Text], SET_CONTENT, Values)),
    windows(&["ac"], cmdlet("Add-Content", &[], Edits, &[Write, Text], SET_CONTENT, Values)),
    cmdlet("Clear-Content", &["clc"], Edits, &[Write], SET_CONTENT, Writes),
    cmdlet("Out-File", &[], Edits, &[WriteLiteral, Text], OUT_FILE, Values),
    windows(&["tee"], cmdlet("Tee-Object", &[], Edits, &[WriteLiteral], OUT_FILE, Values)),
    windows(&["rm", "rmdir"], cmdlet("Remove-Item", &["ri", "rd", "del", "erase"], Edits, &[Write], REMOVE, Writes)),
    windows(&["cp"], cmdlet("Copy-Item", &["cpi", "copy"], Edits, &[Read, WriteLiteral], COPY, Reads)),
    windows(&["mv"], cmdlet("Move-Item", &["mi", "move"], Edits, &[Write, WriteLiteral], MOVE, Writes)),
    windows(&["mkdir", "md"], cmdlet("New-Item", &["ni"], Edits, &[WriteLiteral], &[("Path", WriteLiteral), ("ItemType", Text), ("Force", Switch)], Writes)),
    cmdlet("Rename-Item", &["rni", "ren"], Other, &[Write, Text], ITEM, Writes),
    cmdlet("Set-Item", &["si"], Other, &[Write, Text], ITEM, Writes),
    cmdlet("Clear-Item", &["cli"], Other, &[Write], ITEM, Writes),
    cmdlet("Set-ItemProperty", &["sp"], Other, &[Write, Text, Text], ITEM, Writes),
    cmdlet("Remove-ItemProperty", &["rp"], Other, &[Write, Text], ITEM, Writes),
    cmdlet("Get-ItemProperty", &["gp"], Other, &[Read, Text], FILES, Reads),
    cmdlet("Set-Acl", &[], Other, &[Write, Text], ITEM, Writes),
    cmdlet("Get-Acl", &[], Other, &[Read], FILES, Reads),
    cmdlet("Export-Csv", &["epcsv"], Other, &[WriteLiteral, Text], OUT_FILE, Values),
    cmdlet("Export-Clixml", &[], Other, &[WriteLiteral], OUT_FILE, Values),
    cmdlet("Import-Clixml", &[], Other, &[Read], FILES, Reads),
    cmdlet("Compress-Archive", &[], Other, &[Read, WriteLiteral], ARCHIVE, Reads),
    cmdlet("Expand-Archive", &[], Other, &[Read, WriteLiteral], ARCHIVE, Reads),
    windows(&["curl", "wget"], cmdlet("Invoke-WebRequest", &["iwr"], Other, &[Text], WEB, Values)),
    cmdlet("Invoke-RestMethod", &["irm"], Other, &[Text], WEB, Values),
    windows(&["kill"], cmdlet("Stop-Process", &["spps"], Other, &[Text], &[], Values)),
    cmdlet("Get-Variable", &["gv"], Other, &[Text], &[], Values),
    cmdlet("Set-Variable", &["sv", "set"], Other, &[Text, Text], &[], Values),
    cmdlet("Stop-Service", &["spsv"], Other, &[Text], &[], Values),
    cmdlet("Start-Service", &["sasv"], Other, &[Text], &[], Values),
    cmdlet("Invoke-Expression", &["iex"], Runs, &[Text], &[], Values),
    cmdlet("Invoke-Command", &["icm"], Runs, &[Text], &[], Values),
    windows(&["start"], cmdlet("Start-Process", &["saps"], Runs, &[Text], &[], Values)),
    cmdlet("Start-Job", &["sajb"], Runs, &[Text], &[], Values),
    cmdlet("Start-ThreadJob", &[], Runs, &[Text], &[], Values),
    cmdlet("Invoke-Item", &["ii"], Runs, &[Read], ITEM, Reads),
    cmdlet("Import-Module", &["ipmo"], Runs, &[Text], &[], Values),
    cmdlet("Add-Type", &[], Runs, &[Text], &[], Values),
    cmdlet("New-Object", &[], Runs, &[Text], &[], Values),
    cmdlet("Set-Alias", &["sal"], Runs, &[Text, Text], &[], Values),
    cmdlet("New-Alias", &["nal"], Runs, &[Text, Text], &[], Values),
    cmdlet("Invoke-CimMethod", &["icim"], Runs, &[Text], &[], Values),
    cmdlet("Invoke-WmiMethod", &["iwmi"], Runs, &[Text], &[], Values),
    cmdlet("Register-ScheduledTask", &[], Runs, &[Text], &[], Values),
    cmdlet("Enter-PSSession", &["etsn"], Runs, &[Text], &[], Values),
    cmdlet("New-PSSession", &["nsn"], Runs, &[Text], &[], Values),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_and_alias_has_one_meaning() {
        let mut seen = HashSet::new();
        for cmdlet in CMDLETS {
            for name in [&[cmdlet.name], cmdlet.aliases, cmdlet.on_windows].concat() {
                assert!(seen.insert(name.to_ascii_lowercase()), "{name} is listed twice");
            }
        }
        assert_eq!(find("RI", false).map(|found| found.name), Some("Remove-Item"));
        assert!(find("rm", false).is_none() && find("rm", true).is_some(), "`rm` is a program of Unix");
    }
}
