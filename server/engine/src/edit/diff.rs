//! SKELETON
use crate::edit::*;
use crate::tools::ToolOutput;
use crate::workspace::Workspace;
pub fn preview(_c: &ChangeSet, _w: &Workspace) -> String {
    unimplemented!()
}
pub fn report(_s: &str, _f: &[AppliedFile], _w: &Workspace) -> ToolOutput {
    unimplemented!()
}
