//! The programs whose operands and options are well known.
//!
//! Rule: one table for what a program does and for what it touches, so that no option is a value to one of the
//! two and a flag to the other. A program is listed as one that only looks for the options listed alone.

use super::options::Known;

/// What is known of a program.
pub(super) struct Program {
    names: &'static [&'static str],
    pub tells: Tells,
    pub operands: Operands,
    pub recursive: Recursive,
    pub known: Known,
}

/// What a call with none but listed options does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tells {
    /// It only looks.
    Looks,
    /// It changes files the way an editing tool could.
    Edits,
    /// More than that.
    Nothing,
}

/// How a program's operands are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
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
    /// All are written: what is moved is gone.
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
    /// What is packed, or what of an archive is unpacked, as the letters say.
    Archive,
}

/// When a folder among the operands is gone through with all that lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recursive {
    Never,
    Always,
    /// With one of these options.
    With(&'static [&'static str]),
}

/// What is known of the program of this name.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.names.contains(&name))
}

/// The programs that only look, with their names.
#[cfg(test)]
pub(super) fn lookers() -> impl Iterator<Item = (&'static str, &'static Program)> {
    let lookers = PROGRAMS.iter().filter(|program| program.tells == Tells::Looks);
    lookers.flat_map(|program| program.names.iter().map(move |name| (*name, program)))
}

// One line for each program.
#[rustfmt::skip]
const PROGRAMS: [Program; 72] = [
    Program { names: &["ls"], tells: Tells::Looks, operands: Operands::Read{here:true}, recursive: Recursive::With(&["-R","--recursive"]), known: Known { short: "1aAbBcCdfFghHiklLmnNopqQrRsStuUvxXZw%T%I:", long: &["all","almost-all","color","color=","human-readable","recursive","reverse","sort=","time=","time-style=","group-directories-first","directory","size","inode","classify","full-time"] } },
    Program { names: &["cat"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "AbeEnstTuv", long: &["number","show-all","show-ends","show-tabs","squeeze-blank"] } },
    Program { names: &["head"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "#n%c%qvz", long: &["lines%","bytes%","quiet","verbose"] } },
    Program { names: &["tail"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "#n%c%qvzfFs%", long: &["lines%","bytes%","quiet","verbose","follow"] } },
    Program { names: &["wc"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "clmLw", long: &["lines","words","chars","bytes","max-line-length","files0-from@"] } },
    Program { names: &["grep","egrep","fgrep"], tells: Tells::Looks, operands: Operands::ReadAfter{options:&["-e","-f","--regexp","--file"],here:false}, recursive: Recursive::With(&["-r","-R","--recursive","--dereference-recursive"]), known: Known { short: "#EFGPe:ivwxyczf<LlhHnoqsA%B%C%m%abrZUI", long: &["include=","exclude=","exclude-dir=","exclude-from<","file<","color","color=","ignore-case","recursive","line-number","count","files-with-matches","files-without-match","only-matching","invert-match","word-regexp","fixed-strings","extended-regexp","perl-regexp","context%","after-context%","before-context%","max-count%","regexp=","no-filename","with-filename","quiet","null","text"] } },
    Program { names: &["rg"], tells: Tells::Looks, operands: Operands::ReadAfter{options:&["-e","-f","--files","--type-list","--regexp","--file"],here:true}, recursive: Recursive::Always, known: Known { short: "e:f<ivwxclNnoqsSFPUhHA%B%C%m%g:t:T:uM%j%d%r:0p.", long: &["files","hidden","no-ignore","glob=","iglob=","type=","type-not=","ignore-case","smart-case","case-sensitive","fixed-strings","files-with-matches","files-without-match","count","count-matches","line-number","no-line-number","context%","after-context%","before-context%","max-count%","max-depth%","multiline","only-matching","invert-match","word-regexp","json","stats","sort=","heading","no-heading","color=","regexp=","file<","type-list","pcre2","with-filename","no-filename","vimgrep","trim","replace="] } },
    Program { names: &["which"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "as", long: &["all"] } },
    Program { names: &["type"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "aftpP", long: &[] } },
    Program { names: &["diff"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::With(&["-r","--recursive"]), known: Known { short: "#abBcdeEiI:lNnpqstTuU%wW%x:yZC%", long: &["unified","unified%","brief","color","color=","side-by-side","ignore-all-space","ignore-case","new-file","exclude=","stat","context%"] } },
    Program { names: &["cmp"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "bi%ln%s", long: &["silent","quiet","verbose"] } },
    Program { names: &["comm"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "123iz", long: &["nocheck-order","check-order"] } },
    Program { names: &["stat"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "c:fLt", long: &["format=","printf=","terse","file-system","dereference"] } },
    Program { names: &["du"], tells: Tells::Looks, operands: Operands::Read{here:true}, recursive: Recursive::Always, known: Known { short: "0aBbcd%DhHklmsSx", long: &["max-depth%","human-readable","summarize","total","all","apparent-size","exclude=","files0-from@"] } },
    Program { names: &["df"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "ahHiklPTt:x:", long: &["human-readable","total","type="] } },
    Program { names: &["cut"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "b:c:d:f:nsz", long: &["delimiter=","fields=","complement","output-delimiter=","characters=","only-delimited"] } },
    Program { names: &["sort"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "bcCdfghik:MmnrRst:uVzo>T>", long: &["key=","numeric-sort","reverse","unique","human-numeric-sort","version-sort","field-separator=","ignore-case","check","output>","temporary-directory>","files0-from@"] } },
    Program { names: &["uniq"], tells: Tells::Looks, operands: Operands::ReadThenWrite, recursive: Recursive::Never, known: Known { short: "cdDf%is%uw%z", long: &["count","repeated","unique","ignore-case"] } },
    Program { names: &["tr"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "cCdst", long: &["delete","complement","squeeze-repeats"] } },
    Program { names: &["date"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "d:Iur<R", long: &["date=","utc","iso-8601","iso-8601=","rfc-3339=","reference<"] } },
    Program { names: &["basename"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "as:z", long: &["multiple","suffix="] } },
    Program { names: &["dirname"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "z", long: &[] } },
    Program { names: &["realpath"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "eLmPqsz", long: &["relative-to=","relative-base=","canonicalize-existing","canonicalize-missing"] } },
    Program { names: &["readlink"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "efmnqsvz", long: &["canonicalize"] } },
    Program { names: &["pwd"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "LP", long: &[] } },
    Program { names: &["true","false",":","sleep","whoami"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "", long: &[] } },
    Program { names: &["seq"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "f:s:w", long: &[] } },
    Program { names: &["nl"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "b:n:w%s:v%", long: &[] } },
    Program { names: &["tac"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "brs:", long: &[] } },
    Program { names: &["rev"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "", long: &[] } },
    Program { names: &["md5sum","sha1sum","sha256sum"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "b", long: &[] } },
    Program { names: &["od"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "A:cj%N%t:vx", long: &[] } },
    Program { names: &["xxd"], tells: Tells::Looks, operands: Operands::ReadThenWrite, recursive: Recursive::Never, known: Known { short: "abc%eg%il%pps%u", long: &[] } },
    Program { names: &["hexdump"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "bcCdoxvn%s%", long: &[] } },
    Program { names: &["strings"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "afn%", long: &["all"] } },
    Program { names: &["column"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "tc%s:", long: &["table","separator="] } },
    Program { names: &["paste"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "d:sz", long: &["delimiters=","serial"] } },
    Program { names: &["jq"], tells: Tells::Looks, operands: Operands::ReadAfter{options:&["-f","--from-file"],here:false}, recursive: Recursive::Never, known: Known { short: "rcsSnMCaejRf<", long: &["raw-output","compact-output","slurp","null-input","sort-keys","exit-status","tab","monochrome-output","color-output","raw-input","from-file<"] } },
    Program { names: &["ps"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "AadeflFjHwxuTp%", long: &[] } },
    Program { names: &["hostname"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "fiIsd", long: &[] } },
    Program { names: &["id"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "gGnru", long: &[] } },
    Program { names: &["uname"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "amnoprsv", long: &[] } },
    Program { names: &["nproc"], tells: Tells::Looks, operands: Operands::None, recursive: Recursive::Never, known: Known { short: "", long: &["all"] } },
    Program { names: &["tree"], tells: Tells::Looks, operands: Operands::Read{here:true}, recursive: Recursive::Always, known: Known { short: "adfI:L%P:CDo>", long: &["dirsfirst","gitignore","noreport","output>"] } },
    Program { names: &["file"], tells: Tells::Looks, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "bhiLf@m<", long: &["mime-type","brief","files-from@","magic-file<"] } },
    Program { names: &["mkdir"], tells: Tells::Edits, operands: Operands::Write, recursive: Recursive::Never, known: Known { short: "pvm:", long: &["parents","verbose","mode="] } },
    Program { names: &["touch"], tells: Tells::Edits, operands: Operands::Write, recursive: Recursive::Never, known: Known { short: "acmd:t:r<", long: &["no-create","date=","reference<"] } },
    Program { names: &["mv"], tells: Tells::Edits, operands: Operands::Move, recursive: Recursive::Always, known: Known { short: "finuvTt>S:", long: &["force","no-clobber","verbose","update","target-directory>","suffix="] } },
    Program { names: &["cp"], tells: Tells::Edits, operands: Operands::Copy, recursive: Recursive::With(&["-r","-R","-a","--recursive","--archive"]), known: Known { short: "adfinprRTuvt>S:", long: &["recursive","archive","force","no-clobber","verbose","update","target-directory>","suffix="] } },
    Program { names: &["rm"], tells: Tells::Edits, operands: Operands::Write, recursive: Recursive::With(&["-r","-R","--recursive"]), known: Known { short: "dfirRv", long: &["force","recursive","verbose","dir"] } },
    Program { names: &["rmdir"], tells: Tells::Edits, operands: Operands::Write, recursive: Recursive::Never, known: Known { short: "pv", long: &["parents"] } },
    Program { names: &["less","more","bat","zcat","bzcat","xzcat","base64","base32","fold","expand","unexpand","fmt","pr","shuf","iconv","source",".","exa","eza","sha512sum","sha224sum","sha384sum","b2sum","cksum","sum","hd","view","readelf","objdump","nm","tsort","look","ul","numfmt"], tells: Tells::Nothing, operands: Operands::Read{here:false}, recursive: Recursive::With(&["-R","-T","--recurse","--tree"]), known: Known { short: "o>w%s%", long: &["output>"] } },
    Program { names: &["ag","ack"], tells: Tells::Nothing, operands: Operands::ReadAfter{options:&[],here:true}, recursive: Recursive::Always, known: Known { short: "", long: &[] } },
    Program { names: &["zgrep","bzgrep","xzgrep","rgrep"], tells: Tells::Nothing, operands: Operands::ReadAfter{options:&["-e","-f"],here:false}, recursive: Recursive::With(&["-r","-R","--recursive"]), known: Known { short: "e:f<A%B%C%m%rinHhlLcvwxo", long: &[] } },
    Program { names: &["sed","gsed"], tells: Tells::Nothing, operands: Operands::ReadAfter{options:&["-e","-f","--expression","--file"],here:false}, recursive: Recursive::Never, known: Known { short: "e:f<l%nrEzsui?", long: &["expression=","file<","in-place","quiet","silent","regexp-extended","null-data","separate"] } },
    Program { names: &["awk","gawk","mawk","nawk"], tells: Tells::Nothing, operands: Operands::ReadAfter{options:&["-f","--file"],here:false}, recursive: Recursive::Never, known: Known { short: "f<F:v:", long: &["file<","field-separator=","assign="] } },
    Program { names: &["yq"], tells: Tells::Nothing, operands: Operands::ReadAfter{options:&["--from-file"],here:false}, recursive: Recursive::Never, known: Known { short: "rcsnMCeijo:p:PN", long: &["inplace","from-file<"] } },
    Program { names: &["perl","ruby"], tells: Tells::Nothing, operands: Operands::Read{here:false}, recursive: Recursive::Never, known: Known { short: "e:E:nplai?w0", long: &[] } },
    Program { names: &["tee","unlink","shred","truncate","mkfifo","mknod"], tells: Tells::Nothing, operands: Operands::Write, recursive: Recursive::Never, known: Known { short: "s:r<an:fuvzi", long: &["reference<","size=","iterations="] } },
    Program { names: &["ln"], tells: Tells::Nothing, operands: Operands::Copy, recursive: Recursive::Never, known: Known { short: "fsrvTt>S:", long: &["symbolic","force","target-directory>","suffix="] } },
    Program { names: &["install"], tells: Tells::Nothing, operands: Operands::Copy, recursive: Recursive::Never, known: Known { short: "dDpvCcm:o:g:t>S:", long: &["mode=","owner=","group=","target-directory>","suffix="] } },
    Program { names: &["chmod","chown","chgrp","chattr","setfacl"], tells: Tells::Nothing, operands: Operands::WriteAfter, recursive: Recursive::With(&["-R","--recursive"]), known: Known { short: "RvcfhHLP", long: &["recursive","verbose","changes","reference<"] } },
    Program { names: &["split","csplit"], tells: Tells::Nothing, operands: Operands::ReadThenWrite, recursive: Recursive::Never, known: Known { short: "a%b:C:l%n:dxk", long: &["bytes=","lines%","number=","suffix-length%"] } },
    Program { names: &["rsync"], tells: Tells::Nothing, operands: Operands::Copy, recursive: Recursive::Always, known: Known { short: "avzrlptgoDuncPhe:HAXxRbT>", long: &["archive","verbose","compress","delete","rsh=","exclude=","include=","exclude-from<","include-from<","files-from@","log-file>","backup-dir>","partial-dir>","temp-dir>","dry-run","progress"] } },
    Program { names: &["scp"], tells: Tells::Nothing, operands: Operands::Copy, recursive: Recursive::With(&["-r"]), known: Known { short: "rpqvC346i<F<P%l%o:S:J:c:", long: &[] } },
    Program { names: &["gzip","gunzip","bzip2","bunzip2","xz","unxz","zstd","unzstd","lz4","compress","uncompress"], tells: Tells::Nothing, operands: Operands::Both, recursive: Recursive::With(&["-r","--recursive"]), known: Known { short: "cdfkltvqr123456789S:o>", long: &["recursive","keep","stdout","force","decompress"] } },
    Program { names: &["unzip"], tells: Tells::Nothing, operands: Operands::UnpackFirst, recursive: Recursive::Always, known: Known { short: "lnoqtvpuCjd>x:", long: &[] } },
    Program { names: &["zip"], tells: Tells::Nothing, operands: Operands::WriteThenRead, recursive: Recursive::With(&["-r","-R","--recurse-paths"]), known: Known { short: "rqvjum0123456789yX", long: &[] } },
    Program { names: &["patch"], tells: Tells::Nothing, operands: Operands::Patch, recursive: Recursive::Never, known: Known { short: "Rfstp%i<o>d>r>b", long: &["input<","output>","directory>","strip%","reverse","force","dry-run"] } },
    Program { names: &["curl"], tells: Tells::Nothing, operands: Operands::Fetch, recursive: Recursive::Never, known: Known { short: "sSLkfIivX:H:d:F:o>OT<K<c>D>E<u:A:e:m%b:x:JgGw:ny#", long: &["output>","output-dir>","upload-file<","config<","cookie-jar>","dump-header>","cert<","key<","cacert<","remote-name","silent","location","fail","show-error","header=","data=","data-binary=","data-raw=","data-urlencode=","json=","form=","request=","netrc-file<","trace>","trace-ascii>","stderr>","write-out=","url=","user=","cookie="] } },
    Program { names: &["wget"], tells: Tells::Nothing, operands: Operands::Fetch, recursive: Recursive::Never, known: Known { short: "qcNkrpO>o>a>P>i<U:t%T%", long: &["output-document>","output-file>","append-output>","directory-prefix>","input-file<","post-file<","body-file<","load-cookies<","save-cookies>","quiet","continue","recursive"] } },
    Program { names: &["tar","bsdtar"], tells: Tells::Nothing, operands: Operands::Archive, recursive: Recursive::Always, known: Known { short: "xtcruAvzjJapPkmOShf:C:X<T@I:g>b%V:", long: &["file=","directory=","files-from@","exclude-from<","exclude=","create","extract","get","list","append","update","gzip","strip-components%","one-top-level="] } },
];
