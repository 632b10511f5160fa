//! The programs whose operands and options are well known.
//!
//! Rule: one table for what a program does and for what it touches, so that no option is a value to one of the
//! two and a flag to the other. A program is listed as one that only looks for the options listed alone.

use super::options::OptionTable;

/// The known facts about a program.
pub(super) struct ProgramFacts {
    names: &'static [&'static str],
    pub reports: CallEffect,
    pub operands: OperandUse,
    pub recursive: Recursion,
    pub known: OptionTable,
}

/// The effect of a call with listed options only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEffect {
    /// It only looks.
    Looks,
    /// It changes files the way an editing tool could.
    Edits,
    /// More than that.
    Nothing,
}

/// How a program's operands are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandUse {
    /// They are no files.
    None,
    /// All are read; none means the folder it runs in, where that is `true`.
    Read { here: bool },
    /// The first is no file, unless one of the options gave it; the rest as above.
    ReadAfter { options: &'static [&'static str], here: bool },
    /// All are written.
    Write,
    /// The first is no file, the rest are written.
    WriteAfter,
    /// All are read and written.
    Both,
    /// All but the last are read, the last is written.
    Copy,
    /// All are written: a moved file is gone.
    Move,
    /// The first is read, the second written.
    ReadThenWrite,
    /// The first is written, the rest are read.
    WriteThenRead,
    /// The first is read and unpacked here or into the folder of `-d`.
    UnpackFirst,
    /// The first is patched with the second; without one, anything here may be.
    Patch,
    /// They are addresses; options tell where the answer goes.
    Fetch,
    /// The packed files, or the unpacked part of an archive, by the letters.
    Archive,
}

/// When a folder among the operands is gone through with all that lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recursion {
    Never,
    Always,
    /// With one of these options.
    With(&'static [&'static str]),
}

/// The known facts about the program of this name.
pub(super) fn find(name: &str) -> Option<&'static ProgramFacts> {
    PROGRAMS.iter().find(|program| program.names.contains(&name))
}

/// The programs that only look, with their names.
#[cfg(test)]
pub(super) fn lookers() -> impl Iterator<Item = (&'static str, &'static ProgramFacts)> {
    let lookers = PROGRAMS.iter().filter(|program| program.reports == CallEffect::Looks);
    lookers.flat_map(|program| program.names.iter().map(move |name| (*name, program)))
}

// One line for each program.
#[rustfmt::skip]
const PROGRAMS: [ProgramFacts; 75] = [
    ProgramFacts { names: &["ls"], reports: CallEffect::Looks, operands: OperandUse::Read{here:true}, recursive: Recursion::With(&["-R","--recursive"]), known: OptionTable { short: "1aAbBcCdfFghHiklLmnNopqQrRsStuUvxXZw%T%I:", long: &["all","almost-all","color","color=","human-readable","recursive","reverse","sort=","time=","time-style=","group-directories-first","directory","size","inode","classify","full-time"] } },
    ProgramFacts { names: &["cat"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "AbeEnstTuv", long: &["number","show-all","show-ends","show-tabs","squeeze-blank"] } },
    ProgramFacts { names: &["head"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "#n%c%qvz", long: &["lines%","bytes%","quiet","verbose"] } },
    ProgramFacts { names: &["tail"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "#n%c%qvzfFs%", long: &["lines%","bytes%","quiet","verbose","follow"] } },
    ProgramFacts { names: &["wc"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "clmLw", long: &["lines","words","chars","bytes","max-line-length","files0-from@"] } },
    ProgramFacts { names: &["grep","egrep","fgrep"], reports: CallEffect::Looks, operands: OperandUse::ReadAfter{options:&["-e","-f","--regexp","--file"],here:false}, recursive: Recursion::With(&["-r","-R","--recursive","--dereference-recursive"]), known: OptionTable { short: "#EFGPe:ivwxyczf<LlhHnoqsA%B%C%m%abrRZUI", long: &["dereference-recursive","include=","exclude=","exclude-dir=","exclude-from<","file<","color","color=","ignore-case","recursive","line-number","count","files-with-matches","files-without-match","only-matching","invert-match","word-regexp","fixed-strings","extended-regexp","perl-regexp","context%","after-context%","before-context%","max-count%","regexp=","no-filename","with-filename","quiet","null","text"] } },
    ProgramFacts { names: &["rg"], reports: CallEffect::Looks, operands: OperandUse::ReadAfter{options:&["-e","-f","--files","--type-list","--regexp","--file"],here:true}, recursive: Recursion::Always, known: OptionTable { short: "e:f<ivwxclNnoqsSFPUhHA%B%C%m%g:t:T:uM%j%d%r:0p.", long: &["files","hidden","no-ignore","glob=","iglob=","type=","type-not=","ignore-case","smart-case","case-sensitive","fixed-strings","files-with-matches","files-without-match","count","count-matches","line-number","no-line-number","context%","after-context%","before-context%","max-count%","max-depth%","multiline","only-matching","invert-match","word-regexp","json","stats","sort=","heading","no-heading","color=","regexp=","file<","type-list","pcre2","with-filename","no-filename","vimgrep","trim","replace="] } },
    ProgramFacts { names: &["which"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "as", long: &["all"] } },
    ProgramFacts { names: &["type"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "aftpP", long: &[] } },
    ProgramFacts { names: &["diff"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::With(&["-r","--recursive"]), known: OptionTable { short: "#abBcdeEiI:lNnpqstTuU%wW%x:yZC%", long: &["unified","unified%","brief","color","color=","side-by-side","ignore-all-space","ignore-case","new-file","exclude=","stat","context%"] } },
    ProgramFacts { names: &["cmp"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "bi%ln%s", long: &["silent","quiet","verbose"] } },
    ProgramFacts { names: &["comm"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "123iz", long: &["nocheck-order","check-order"] } },
    ProgramFacts { names: &["stat"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "c:fLt", long: &["format=","printf=","terse","file-system","dereference"] } },
    ProgramFacts { names: &["du"], reports: CallEffect::Looks, operands: OperandUse::Read{here:true}, recursive: Recursion::Always, known: OptionTable { short: "0aBbcd%DhHklmsSx", long: &["max-depth%","human-readable","summarize","total","all","apparent-size","exclude=","files0-from@"] } },
    ProgramFacts { names: &["df"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "ahHiklPTt:x:", long: &["human-readable","total","type="] } },
    ProgramFacts { names: &["cut"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "b:c:d:f:nsz", long: &["delimiter=","fields=","complement","output-delimiter=","characters=","only-delimited"] } },
    ProgramFacts { names: &["sort"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "bcCdfghik:MmnrRst:uVzo>T>", long: &["key=","numeric-sort","reverse","unique","human-numeric-sort","version-sort","field-separator=","ignore-case","check","output>","temporary-directory>","files0-from@"] } },
    ProgramFacts { names: &["uniq"], reports: CallEffect::Looks, operands: OperandUse::ReadThenWrite, recursive: Recursion::Never, known: OptionTable { short: "cdDf%is%uw%z", long: &["count","repeated","unique","ignore-case"] } },
    ProgramFacts { names: &["tr"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "cCdst", long: &["delete","complement","squeeze-repeats"] } },
    ProgramFacts { names: &["date"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "d:Iur<R", long: &["date=","utc","iso-8601","iso-8601=","rfc-3339=","reference<"] } },
    ProgramFacts { names: &["basename"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "as:z", long: &["multiple","suffix="] } },
    ProgramFacts { names: &["dirname"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "z", long: &[] } },
    ProgramFacts { names: &["realpath"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "eLmPqsz", long: &["relative-to=","relative-base=","canonicalize-existing","canonicalize-missing"] } },
    ProgramFacts { names: &["readlink"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "efmnqsvz", long: &["canonicalize"] } },
    ProgramFacts { names: &["pwd"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "LP", long: &[] } },
    ProgramFacts { names: &["true","false",":","sleep","whoami"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "", long: &[] } },
    ProgramFacts { names: &["seq"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "f:s:w", long: &[] } },
    ProgramFacts { names: &["nl"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "b:n:w%s:v%", long: &[] } },
    ProgramFacts { names: &["tac"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "brs:", long: &[] } },
    ProgramFacts { names: &["rev"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "", long: &[] } },
    ProgramFacts { names: &["md5sum","sha1sum","sha256sum"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "b", long: &[] } },
    ProgramFacts { names: &["od"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "A:cj%N%t:vx", long: &[] } },
    ProgramFacts { names: &["xxd"], reports: CallEffect::Looks, operands: OperandUse::ReadThenWrite, recursive: Recursion::Never, known: OptionTable { short: "abc%eg%il%pps%u", long: &[] } },
    ProgramFacts { names: &["hexdump"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "bcCdoxvn%s%", long: &[] } },
    ProgramFacts { names: &["strings"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "afn%", long: &["all"] } },
    ProgramFacts { names: &["column"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "tc%s:", long: &["table","separator="] } },
    ProgramFacts { names: &["paste"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "d:sz", long: &["delimiters=","serial"] } },
    ProgramFacts { names: &["jq"], reports: CallEffect::Looks, operands: OperandUse::ReadAfter{options:&["-f","--from-file"],here:false}, recursive: Recursion::Never, known: OptionTable { short: "rcsSnMCaejRf<", long: &["raw-output","compact-output","slurp","null-input","sort-keys","exit-status","tab","monochrome-output","color-output","raw-input","from-file<"] } },
    ProgramFacts { names: &["ps"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "AadeflFjHwxuTp%", long: &[] } },
    ProgramFacts { names: &["hostname"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "fiIsd", long: &[] } },
    ProgramFacts { names: &["id"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "gGnru", long: &[] } },
    ProgramFacts { names: &["uname"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "amnoprsv", long: &[] } },
    ProgramFacts { names: &["numfmt"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "d:z", long: &["to=","from=","to-unit=","from-unit=","suffix=","padding=","field=","format=","round=","invalid=","delimiter=","grouping","header","zero-terminated"] } },
    ProgramFacts { names: &["base64","base32"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "dDiw%", long: &["decode","ignore-garbage","wrap%"] } },
    ProgramFacts { names: &["uptime"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "ps", long: &["pretty","since"] } },
    ProgramFacts { names: &["nproc"], reports: CallEffect::Looks, operands: OperandUse::None, recursive: Recursion::Never, known: OptionTable { short: "", long: &["all"] } },
    ProgramFacts { names: &["tree"], reports: CallEffect::Looks, operands: OperandUse::Read{here:true}, recursive: Recursion::Always, known: OptionTable { short: "adfI:L%P:CDo>", long: &["dirsfirst","gitignore","noreport","output>"] } },
    ProgramFacts { names: &["file"], reports: CallEffect::Looks, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "bhiLf@m<", long: &["mime-type","brief","files-from@","magic-file<"] } },
    ProgramFacts { names: &["mkdir"], reports: CallEffect::Edits, operands: OperandUse::Write, recursive: Recursion::Never, known: OptionTable { short: "pvm:", long: &["parents","verbose","mode="] } },
    ProgramFacts { names: &["touch"], reports: CallEffect::Edits, operands: OperandUse::Write, recursive: Recursion::Never, known: OptionTable { short: "acmd:t:r<", long: &["no-create","date=","reference<"] } },
    ProgramFacts { names: &["mv"], reports: CallEffect::Edits, operands: OperandUse::Move, recursive: Recursion::Always, known: OptionTable { short: "finuvTt>S:", long: &["force","no-clobber","verbose","update","target-directory>","suffix="] } },
    ProgramFacts { names: &["cp"], reports: CallEffect::Edits, operands: OperandUse::Copy, recursive: Recursion::With(&["-r","-R","-a","--recursive","--archive"]), known: OptionTable { short: "adfinprRTuvt>S:", long: &["recursive","archive","force","no-clobber","verbose","update","target-directory>","suffix="] } },
    ProgramFacts { names: &["rm"], reports: CallEffect::Edits, operands: OperandUse::Write, recursive: Recursion::With(&["-r","-R","--recursive"]), known: OptionTable { short: "dfirRv", long: &["force","recursive","verbose","dir"] } },
    ProgramFacts { names: &["rmdir"], reports: CallEffect::Edits, operands: OperandUse::Write, recursive: Recursion::Never, known: OptionTable { short: "pv", long: &["parents"] } },
    ProgramFacts { names: &["less","more","bat","zcat","bzcat","xzcat","fold","expand","unexpand","fmt","pr","shuf","iconv","source",".","exa","eza","sha512sum","sha224sum","sha384sum","b2sum","cksum","sum","hd","view","readelf","objdump","nm","tsort","look","ul"], reports: CallEffect::Nothing, operands: OperandUse::Read{here:false}, recursive: Recursion::With(&["-R","-T","--recurse","--tree"]), known: OptionTable { short: "o>w%s%", long: &["output>"] } },
    ProgramFacts { names: &["ag","ack"], reports: CallEffect::Nothing, operands: OperandUse::ReadAfter{options:&[],here:true}, recursive: Recursion::Always, known: OptionTable { short: "", long: &[] } },
    ProgramFacts { names: &["zgrep","bzgrep","xzgrep","rgrep"], reports: CallEffect::Nothing, operands: OperandUse::ReadAfter{options:&["-e","-f"],here:false}, recursive: Recursion::With(&["-r","-R","--recursive"]), known: OptionTable { short: "e:f<A%B%C%m%rinHhlLcvwxo", long: &[] } },
    ProgramFacts { names: &["sed","gsed"], reports: CallEffect::Nothing, operands: OperandUse::ReadAfter{options:&["-e","-f","--expression","--file"],here:false}, recursive: Recursion::Never, known: OptionTable { short: "e:f<l%nrEzsui?", long: &["expression=","file<","in-place","quiet","silent","regexp-extended","null-data","separate"] } },
    ProgramFacts { names: &["awk","gawk","mawk","nawk"], reports: CallEffect::Nothing, operands: OperandUse::ReadAfter{options:&["-f","--file"],here:false}, recursive: Recursion::Never, known: OptionTable { short: "f<F:v:", long: &["file<","field-separator=","assign="] } },
    ProgramFacts { names: &["yq"], reports: CallEffect::Nothing, operands: OperandUse::ReadAfter{options:&["--from-file"],here:false}, recursive: Recursion::Never, known: OptionTable { short: "rcsnMCeijo:p:PN", long: &["inplace","from-file<"] } },
    ProgramFacts { names: &["perl","ruby"], reports: CallEffect::Nothing, operands: OperandUse::Read{here:false}, recursive: Recursion::Never, known: OptionTable { short: "e:E:nplai?w0", long: &[] } },
    ProgramFacts { names: &["tee","unlink","shred","truncate","mkfifo","mknod"], reports: CallEffect::Nothing, operands: OperandUse::Write, recursive: Recursion::Never, known: OptionTable { short: "s:r<an:fuvzi", long: &["reference<","size=","iterations="] } },
    ProgramFacts { names: &["ln"], reports: CallEffect::Nothing, operands: OperandUse::Copy, recursive: Recursion::Never, known: OptionTable { short: "fsrvTt>S:", long: &["symbolic","force","target-directory>","suffix="] } },
    ProgramFacts { names: &["install"], reports: CallEffect::Nothing, operands: OperandUse::Copy, recursive: Recursion::Never, known: OptionTable { short: "dDpvCcm:o:g:t>S:", long: &["mode=","owner=","group=","target-directory>","suffix="] } },
    ProgramFacts { names: &["chmod","chown","chgrp","chattr","setfacl"], reports: CallEffect::Nothing, operands: OperandUse::WriteAfter, recursive: Recursion::With(&["-R","--recursive"]), known: OptionTable { short: "RvcfhHLP", long: &["recursive","verbose","changes","reference<"] } },
    ProgramFacts { names: &["split","csplit"], reports: CallEffect::Nothing, operands: OperandUse::ReadThenWrite, recursive: Recursion::Never, known: OptionTable { short: "a%b:C:l%n:dxk", long: &["bytes=","lines%","number=","suffix-length%"] } },
    ProgramFacts { names: &["rsync"], reports: CallEffect::Nothing, operands: OperandUse::Copy, recursive: Recursion::Always, known: OptionTable { short: "avzrlptgoDuncPhe:HAXxRbT>", long: &["archive","verbose","compress","delete","rsh=","exclude=","include=","exclude-from<","include-from<","files-from@","log-file>","backup-dir>","partial-dir>","temp-dir>","dry-run","progress"] } },
    ProgramFacts { names: &["scp"], reports: CallEffect::Nothing, operands: OperandUse::Copy, recursive: Recursion::With(&["-r"]), known: OptionTable { short: "rpqvC346i<F<P%l%o:S:J:c:", long: &[] } },
    ProgramFacts { names: &["gzip","gunzip","bzip2","bunzip2","xz","unxz","zstd","unzstd","lz4","compress","uncompress"], reports: CallEffect::Nothing, operands: OperandUse::Both, recursive: Recursion::With(&["-r","--recursive"]), known: OptionTable { short: "cdfkltvqr123456789S:o>", long: &["recursive","keep","stdout","force","decompress"] } },
    ProgramFacts { names: &["unzip"], reports: CallEffect::Nothing, operands: OperandUse::UnpackFirst, recursive: Recursion::Always, known: OptionTable { short: "lnoqtvpuCjd>x:", long: &[] } },
    ProgramFacts { names: &["zip"], reports: CallEffect::Nothing, operands: OperandUse::WriteThenRead, recursive: Recursion::With(&["-r","-R","--recurse-paths"]), known: OptionTable { short: "rqvjum0123456789yX", long: &[] } },
    ProgramFacts { names: &["patch"], reports: CallEffect::Nothing, operands: OperandUse::Patch, recursive: Recursion::Never, known: OptionTable { short: "Rfstp%i<o>d>r>b", long: &["input<","output>","directory>","strip%","reverse","force","dry-run"] } },
    ProgramFacts { names: &["curl"], reports: CallEffect::Nothing, operands: OperandUse::Fetch, recursive: Recursion::Never, known: OptionTable { short: "sSLkfIivX:H:d:F:o>OT<K<c>D>E<u:A:e:m%b:x:JgGw:ny#", long: &["output>","output-dir>","upload-file<","config<","cookie-jar>","dump-header>","cert<","key<","cacert<","remote-name","silent","location","fail","show-error","header=","data=","data-binary=","data-raw=","data-urlencode=","json=","form=","request=","netrc-file<","trace>","trace-ascii>","stderr>","write-out=","url=","user=","cookie="] } },
    ProgramFacts { names: &["wget"], reports: CallEffect::Nothing, operands: OperandUse::Fetch, recursive: Recursion::Never, known: OptionTable { short: "qcNkrpO>o>a>P>i<U:t%T%", long: &["output-document>","output-file>","append-output>","directory-prefix>","input-file<","post-file<","body-file<","load-cookies<","save-cookies>","quiet","continue","recursive"] } },
    ProgramFacts { names: &["tar","bsdtar"], reports: CallEffect::Nothing, operands: OperandUse::Archive, recursive: Recursion::Always, known: OptionTable { short: "xtcruAvzjJapPkmOShf:C:X<T@I:g>b%V:", long: &["file=","directory=","files-from@","exclude-from<","exclude=","create","extract","get","list","append","update","gzip","strip-components%","one-top-level="] } },
];
