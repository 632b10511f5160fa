//! The name of the host that this process runs on.
//!
//! Rule: it tells people and notes in shared folders which host is meant. No permission depends on it: every container can choose its own.

use std::sync::LazyLock;

/// The name of this host, up to the first dot; empty where the system has none.
pub fn host_name() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let whole = system_name();
        whole.split('.').next().unwrap_or_default().to_owned()
    });
    &NAME
}

#[cfg(unix)]
fn system_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "the variable has the name of the host")]
fn system_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_host_is_short() {
        let name = host_name();
        assert!(!name.is_empty() && !name.contains('.'), "{name:?}");
    }
}
