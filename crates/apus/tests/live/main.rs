//! Situation: processes of this user have endpoints, and somebody looks at them.
//!
//! Where sockets are is a matter of the environment, so that each case runs in a process of its own: this program again, with
//! a folder that nobody else has.

#[cfg(feature = "prometheus")]
mod scrape;

use apus::live::{Error, Process, processes};
use apus::{Builder, Endpoint};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, id};

/// Runs a case of [`cases`] in a process of its own.
fn run(case: &str, folder: &Path, more: &[(&str, &str)]) -> Output {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", &format!("cases::{case}"), "--ignored", "--nocapture"]);
    program.env("APUS_RUNTIME_DIR", folder).env_remove("APUS_LIVE").envs(more.iter().copied());
    program.output().unwrap()
}

/// The same; it must go well.
fn check(case: &str, folder: &Path, more: &[(&str, &str)]) {
    let output = run(case, folder, more);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{case}: {output:?}");
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_process_answers_while_it_has_endpoints() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("apus");
    check("it_answers_while_it_has_endpoints", &folder, &[]);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(sockets(&folder), Vec::<PathBuf>::new(), "it has cleaned up");
}

#[test]
fn live_rpcs_are_shown() {
    let place = tempfile::tempdir().unwrap();
    check("live_rpcs_are_shown", &place.path().join("apus"), &[]);
}

#[test]
fn nonsense_is_refused_and_does_no_harm() {
    let place = tempfile::tempdir().unwrap();
    check("nonsense_is_refused", &place.path().join("apus"), &[]);
}

#[test]
fn who_does_not_want_to_be_seen_is_not() {
    let place = tempfile::tempdir().unwrap();
    check("a_hidden_endpoint_is_hidden", &place.path().join("apus"), &[]);
    check("the_environment_hides_all", &place.path().join("apus"), &[("APUS_LIVE", "0")]);
    assert_eq!(sockets(&place.path().join("apus")), Vec::<PathBuf>::new());
}

#[test]
fn an_open_folder_is_not_trusted_and_endpoints_work_all_the_same() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("apus");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    check("an_open_folder_is_not_trusted", &folder, &[]);
    assert_eq!(sockets(&folder), Vec::<PathBuf>::new());
}

#[test]
fn what_a_killed_process_has_left_is_removed_by_the_next() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("apus");
    let output = run("it_is_aborted", &folder, &[]);
    assert!(!output.status.success());
    let left = sockets(&folder);
    assert_eq!(left.len(), 1, "{left:?}");
    check("it_answers_while_it_has_endpoints", &folder, &[]);
    assert_eq!(sockets(&folder), Vec::<PathBuf>::new());
}

/// Each in a process of its own.
mod cases {
    use super::*;

    #[test]
    #[ignore = "another test runs it"]
    fn it_answers_while_it_has_endpoints() {
        assert_eq!(processes().unwrap(), []);
        let server = Endpoint::bind("127.0.0.1:0").unwrap();
        let client = Endpoint::client().unwrap();
        let found = processes().unwrap();
        assert_eq!(found, [Process::new(id())]);
        let snapshot = found[0].snapshot().unwrap();
        assert_eq!((snapshot.pid, snapshot.version.as_str()), (id(), env!("CARGO_PKG_VERSION")));
        let addresses: Vec<_> = snapshot.endpoints.iter().map(|one| one.address).collect();
        assert_eq!(addresses, [server.local_addr(), client.local_addr()]);
        assert!(snapshot.cpu_nanos > 0 && snapshot.program.starts_with("live"), "{snapshot:?}");
        let later = found[0].snapshot().unwrap();
        assert!(later.monotonic_nanos > snapshot.monotonic_nanos);
        assert_eq!(apus::live::own().endpoints.len(), 2);

        drop(server.clone());
        drop(server);
        assert_eq!(found[0].snapshot().unwrap().endpoints.len(), 1);
        drop(client);
        assert_eq!(processes().unwrap(), []);
        assert!(matches!(found[0].snapshot(), Err(Error::Absent { .. })));
        // And again.
        let _again = Endpoint::client().unwrap();
        assert_eq!(found[0].snapshot().unwrap().endpoints.len(), 1);
    }

    #[test]
    #[ignore = "another test runs it"]
    fn live_rpcs_are_shown() {
        let over_the_network = || Builder::default().local(false);
        let server = over_the_network().bind("127.0.0.1:0").unwrap();
        let client = over_the_network().client().unwrap();
        client.send(server.local_addr(), "12345", 0).unwrap();
        let request = server.recv_request().unwrap();
        let rpcs = Process::new(id()).rpcs().unwrap();
        let found = |role: &str| rpcs.iter().find(|rpc| rpc.role == role).unwrap();
        assert_eq!(rpcs.len(), 2, "{rpcs:?}");
        assert_eq!(found("client").peer, server.local_addr());
        assert_eq!(found("client").outgoing.map(|(length, ..)| length), Some(5));
        assert_eq!(found("server").state, "in_service");
        assert_eq!(found("server").id, found("client").id);
        request.reply("x").unwrap();
        client.recv().unwrap();
        assert!(client.drain(std::time::Duration::from_secs(60)));
    }

    #[test]
    #[ignore = "another test runs it"]
    fn nonsense_is_refused() {
        let _endpoint = Endpoint::client().unwrap();
        let process = Process::new(id());
        let Err(Error::Refused { message, .. }) = process.ask("dance") else { panic!() };
        assert!(message.contains("`dance`") && message.contains("`metrics`"), "{message}");
        let help = String::from_utf8(process.ask("help").unwrap()).unwrap();
        assert!(help.contains("`rpcs`"), "{help}");

        let folder = std::env::var_os("APUS_RUNTIME_DIR").unwrap();
        let socket = Path::new(&folder).join(format!("{}.sock", id()));
        let connect = || UnixStream::connect(&socket).unwrap();
        // Hangs up without a word.
        drop(connect());
        for words in [vec![0xff; 100_000], vec![b'x'; 1_000], b"\n".to_vec()] {
            let mut stream = connect();
            // It may be hung up on while it speaks.
            let _ = stream.write_all(&words);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(!String::from_utf8_lossy(&answer).contains("\"ok\":true"));
        }
        process.snapshot().unwrap();
    }

    #[test]
    #[ignore = "another test runs it"]
    fn a_hidden_endpoint_is_hidden() {
        let _hidden = Builder::default().observable(false).client().unwrap();
        assert_eq!(processes().unwrap(), []);
        let seen = Endpoint::client().unwrap();
        let snapshot = Process::new(id()).snapshot().unwrap();
        assert_eq!(snapshot.endpoints.len(), 1);
        assert_eq!(snapshot.endpoints[0].address, seen.local_addr());
    }

    #[test]
    #[ignore = "another test runs it"]
    fn the_environment_hides_all() {
        let _hidden = Endpoint::client().unwrap();
        assert_eq!(processes().unwrap(), []);
    }

    #[test]
    #[ignore = "another test runs it"]
    fn an_open_folder_is_not_trusted() {
        let server = Endpoint::bind("127.0.0.1:0").unwrap();
        let client = Endpoint::client().unwrap();
        client.send(server.local_addr(), "x", 0).unwrap();
        server.recv_request().unwrap().reply("y").unwrap();
        assert_eq!(client.recv().unwrap().result.unwrap(), "y");
        let error = processes().unwrap_err().to_string();
        assert!(error.contains("chmod 700"), "{error}");
    }

    #[test]
    #[ignore = "another test runs it"]
    fn it_is_aborted() {
        let _endpoint = Endpoint::client().unwrap();
        assert_eq!(processes().unwrap().len(), 1);
        std::process::abort();
    }
}
