//! Listed hosts: reached through the proxy and in no other way.
//!
//! Rule: the hosts are servers of the test on loopback, listed by their address; what comes through is checked where
//! it arrives, and what must not come through is tried at a server that is there.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use kode_e2e::{Offer, Project, Script, call, say};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use super::fixture::{Fixture, Outside, User, collect, wait_until_gone};
use super::{BUBBLEWRAP, LANDLOCK};

/// The text of the server.
const PAGE: &str = "page of the listed host";
/// How the command line of a bridge begins.
const BRIDGE: &str = "/run/kode-ls/helper\0__sandbox\0--bridge";
/// `ask REQUEST` sends text to the proxy and shows the answer; `tunnel HOST:PORT REQUEST` sends it through a tunnel.
const FUNCTIONS: &str = r#"
proxy=${HTTP_PROXY##*:}
ask() { exec 3<>/dev/tcp/127.0.0.1/$proxy || return; printf "$1" >&3; cat <&3; exec 3>&-; }
tunnel() {
    exec 3<>/dev/tcp/127.0.0.1/$proxy && printf "CONNECT $1 HTTP/1.1\r\nHost: $1\r\n\r\n" >&3
    while read -r line <&3 && [ "$line" != $'\r' ]; do echo "$line"; done
    printf "$2" >&3; cat <&3; exec 3>&-
}
"#;

/// A server that answers every request with [`PAGE`] and counts them.
struct Server {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let counter = Arc::clone(&counter);
                thread::spawn(move || answer(stream, &counter));
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream, counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::SeqCst);
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    if lines.any(|line| line.is_ok_and(|line| line.is_empty())) {
        let length = PAGE.len();
        // The caller may be gone.
        let _ =
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{PAGE}");
    }
}

/// The options for a host, and a script with the functions and `$server`.
fn prepared<'a>(host: &'a str, server: &Server, script: &str) -> ([&'a str; 5], String) {
    let options = ["--kind", BUBBLEWRAP, "--allow-host", host, "--verbose"];
    (options, format!("server={}\n{FUNCTIONS}\n{script}", server.port))
}

#[test]
fn a_listed_host_is_reached_by_requests_and_tunnels() {
    for user in User::all() {
        let (mut fixture, server) = (Fixture::new(user), Server::new());
        let host = format!("127.0.0.1:{}", server.port);
        let script = r#"
            ask "GET http://127.0.0.1:$server/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"; echo
            tunnel 127.0.0.1:$server 'GET / HTTP/1.1\r\n\r\n'; echo
            echo "$HTTPS_PROXY $ALL_PROXY $http_proxy $https_proxy $all_proxy" | tr ' ' '\n' | sort -u | wc -l
            echo "none: ${NO_PROXY-unset} ${no_proxy-unset}"
        "#;
        let (options, script) = prepared(&host, &server, script);
        let output = fixture.run(&options, &script);
        assert_eq!(output.stdout.matches(PAGE).count(), 2, "{user:?}: {output:?}");
        assert!(output.stdout.ends_with("\n1\nnone:  \n"), "{user:?}: {output:?}");
        assert!(output.stderr.contains("network listed hosts"), "{user:?}: {output:?}");
        assert_eq!(server.requests(), 2, "{user:?}");
        fixture.check(Outside::Untouched, "listed");
    }
}

#[test]
fn no_other_host_is_reached_however_it_is_written() {
    let (mut fixture, server) = (Fixture::new(User::Own), Server::new());
    let host = format!("127.0.0.1:{}", server.port);
    let script = r#"
        for host in 127.0.0.1:$tcp 127.1:$server 0x7f000001:$server 2130706433:$server localhost:$server \
            LOCALHOST.:$server '[::1]':$server "[::ffff:127.0.0.1]:$server" 0.0.0.0:$server \
            127.0.0.1@localhost:$server "localhost@127.0.0.1:$server" '127.0.0.1\0.localhost':$server \
            '127.0.0.1\0':$server evil.example:443 127.0.0.1:80; do
            for request in "GET http://$host/" "CONNECT $host"; do
                status=$(ask "$request HTTP/1.1\r\nHost: 127.0.0.1:$server\r\nConnection: close\r\n\r\n" | head -n 1)
                case $status in *" 400 "*|*" 403 "*) ;; *) echo "$request: $status" ;; esac
            done
        done
        ask "GET http://evil.example/ HTTP/1.1\r\nConnection: close\r\n\r\n" | tail -n 1
    "#;
    let (options, script) = prepared(&host, &server, script);
    let output = fixture.run(&options, &script);
    assert_eq!(output.stdout, "host evil.example is not in sandbox.network.allowedDomains\n", "{output:?}");
    assert_eq!(server.requests(), 0);
    fixture.check(Outside::Untouched, "other hosts");
}

#[test]
fn nothing_but_the_bridge_leads_out() {
    for user in User::all() {
        let (mut fixture, server) = (Fixture::new(user), Server::new());
        let host = format!("127.0.0.1:{}", server.port);
        let script = r#"
            (exec 3<>/dev/tcp/127.0.0.1/$server) 2>/dev/null && echo "reached directly"
            [ -S /run/kode-ls/proxy ] || echo "no socket"
            perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0) or exit 9' ; [ $? = 9 ] || echo "a socket was made"
            perl -MSocket -e 'socketpair(my $a, my $b, PF_UNIX, SOCK_STREAM, 0) or exit 8;
                connect($a, pack_sockaddr_un("/run/kode-ls/proxy")) or exit 9'; [ $? = 9 ] || echo "a pair was connected"
            bridge=$(grep -la -e '-[-]bridge' /proc/[0-9]*/cmdline | cut -d/ -f3)
            [ -d "/proc/$bridge" ] && [ -n "$bridge" ] || echo "no bridge: $bridge"
            cat /proc/$bridge/environ >/dev/null 2>&1 && echo "its variables were read"
            readlink /proc/$bridge/fd/0 >/dev/null 2>&1 && echo "its files were seen"
            (exec 3<>/proc/$bridge/mem) 2>/dev/null && echo "its memory was opened"
            ask "GET http://127.0.0.1:$server/ HTTP/1.1\r\nConnection: close\r\n\r\n" | tail -n 1; echo
        "#;
        let (options, script) = prepared(&host, &server, script);
        let output = fixture.run(&options, &script);
        assert_eq!(output.stdout, format!("{PAGE}\n"), "{user:?}: {output:?}");
        assert_eq!(server.requests(), 1, "{user:?}");
        fixture.check(Outside::Untouched, "out");
    }
}

#[test]
fn many_connections_at_a_time_are_all_served() {
    let (fixture, server) = (Fixture::new(User::Own), Server::new());
    let host = format!("127.0.0.1:{}", server.port);
    let script = r#"
        for i in {10..109}; do
            eval "exec $i<>/dev/tcp/127.0.0.1/$proxy"
            printf "GET http://127.0.0.1:$server/ HTTP/1.1\r\nConnection: close\r\n\r\n" >&$i
        done
        for i in {10..109}; do cat <&$i | tail -n 1; echo; eval "exec $i>&-"; done
    "#;
    let (options, script) = prepared(&host, &server, script);
    let output = fixture.run(&options, &script);
    assert_eq!(output.stdout.matches(PAGE).count(), 100, "{output:?}");
}

#[test]
fn the_bridge_ends_with_the_command() {
    let (fixture, server) = (Fixture::new(User::Own), Server::new());
    let host = format!("127.0.0.1:{}", server.port);
    let (options, script) = prepared(&host, &server, "(sleep 600 &) >/dev/null 2>&1; echo ran");
    let output = fixture.run(&options, &script);
    assert_eq!((output.code, &*output.stdout), (0, "ran\n"), "{output:?}");
    wait_until_gone(BRIDGE);
    let (options, script) = prepared(&host, &server, "echo ready; sleep 600");
    let mut arguments = vec!["sandbox"];
    arguments.extend(options);
    arguments.extend(["--", "bash", "-c", &script]);
    let mut killed = fixture.kode_ls(&arguments).spawn().unwrap();
    wait_for_line(&mut killed);
    kill_process_group(Pid::from_child(&killed), Signal::KILL).unwrap();
    assert_eq!(collect(killed).code, 137);
    wait_until_gone(BRIDGE);
}

fn wait_for_line(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
}

#[test]
fn without_a_listed_host_there_is_no_proxy() {
    let fixture = Fixture::new(User::Own);
    let script = "echo ${HTTP_PROXY-none}; ls -A /run/kode-ls; (exec 3<>/dev/tcp/127.0.0.1/$tcp) 2>/dev/null";
    let output = fixture.run(&["--kind", BUBBLEWRAP], script);
    assert_eq!((output.code, &*output.stdout), (1, "none\ncontrol\nhelper\n"), "{output:?}");
}

#[test]
fn landlock_alone_leaves_the_network_off_and_says_so() {
    let mut fixture = Fixture::new(User::Own);
    let options = ["--kind", LANDLOCK, "--allow-host", "localhost", "--verbose"];
    let output = fixture.run(&options, "echo ${HTTP_PROXY-none}; exec 3<>/dev/tcp/127.0.0.1/$tcp");
    assert_eq!((output.code, &*output.stdout), (1, "none\n"), "{output:?}");
    assert!(output.stderr.contains("the network is off"), "{output:?}");
    fixture.check(Outside::Untouched, LANDLOCK);
}

#[test]
fn a_host_that_is_none_runs_nothing() {
    let fixture = Fixture::new(User::Own);
    for host in ["*", "https://example.com", "127.1", "a b", ""] {
        let output = fixture.run(&["--allow-host", host], "echo ran");
        assert_eq!((output.code, &*output.stdout), (2, ""), "{host}: {output:?}");
    }
}

#[test]
fn the_settings_say_which_hosts_the_agents_commands_reach() {
    let server = Server::new();
    let host = format!("127.0.0.1:{}", server.port);
    let ask = r#"ask "GET http://127.0.0.1:$server/ HTTP/1.1\r\nConnection: close\r\n\r\n" | tail -n 1"#;
    let command = format!("server={}\n{FUNCTIONS}\n{ask}", server.port);
    for (denied, answer) in
        [(json!([]), PAGE), (json!(["127.0.0.1"]), "host 127.0.0.1 is in sandbox.network.deniedDomains")]
    {
        let bash = call("Bash", json!({ "command": command }));
        let project = Project::new(&Script::new([bash.clone(), bash, say("Done.")]));
        let folder = project.outside().join("settings");
        std::fs::create_dir(&folder).unwrap();
        let network = json!({ "allowedDomains": [host], "deniedDomains": denied });
        let settings = json!({ "sandbox": { "network": network } }).to_string();
        std::fs::write(folder.join("settings.json"), settings).unwrap();
        let client = project.start_as(&[], &[("KODE_CONFIG_DIR", folder.to_str().unwrap())]);
        client.initialize(Offer::kode().params(&project.workspace()));
        let session = client.session();
        let turn = session.prompt("go");
        for call in 0..2 {
            session.allow(call);
        }
        session.wait_done(&turn);
        let [(text, is_error)] = project.model.last_results().try_into().unwrap();
        assert!(!is_error && text.contains(answer), "{denied}: {text}");
    }
    assert_eq!(server.requests(), 2, "once for each command where nothing is denied");
}
