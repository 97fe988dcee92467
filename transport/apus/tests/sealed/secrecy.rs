//! KEY-2: no text that a program can show has a key.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use apus::Endpoint;
use apus::security::Security;
use apus::trace::{self, FreezeReason, Sampling};

use crate::keys::{Ca, Cluster, serve};

/// The folder for the trace of the child process.
const FOLDER: &str = "APUS_TEST_SECRECY";

/// Everything that a program can print of endpoints with keys: run by the test below in a separate
/// process, because the log of keys concerns all handshakes of a process.
#[test]
#[ignore = "run by `what_can_be_shown_has_no_key`"]
fn shows_everything() {
    let folder = PathBuf::from(env::var(FOLDER).unwrap());
    apus::security::log_keys();
    trace::set_sampling(Sampling::All);
    let (ca, cluster) = (Ca::new(), Cluster::new(0xd7));
    // Once: all endpoints have the key that is searched for.
    ca.issue("host");
    let builders: [&dyn Fn() -> apus::EndpointBuilder; 2] =
        [&|| Endpoint::builder().security(Security::new(ca.settings("host"))), &|| {
            cluster.builder()
        }];
    for builder in builders {
        println!("{:?}", builder());
        let server = Arc::new(builder().bind("127.0.0.1:0").unwrap());
        let thread = serve(&server);
        let client = builder().client().unwrap();
        client.call(server.local_addr(), vec![1; 100_000]).unwrap();
        println!("{client:?} {server:?} {:?}", client.metrics());
        println!("{:?}", server.metrics());
        let untrusted = Ca::new().builder("untrusted").client().unwrap();
        println!("{:?}", untrusted.call(server.local_addr(), "hello").unwrap_err());
        println!("{:?}", untrusted.handshake_failure(server.local_addr()));
        server.shutdown();
        thread.join().unwrap();
    }
    println!("{:?}", ca.settings("host"));
    println!("{:?} {:?}", cluster.security(), Endpoint::builder().security(cluster.security()));
    trace::freeze(FreezeReason::Demand);
    trace::dump_to(&folder.join("trace")).unwrap();
    let private = fs::read_to_string(ca.path("host.key")).unwrap();
    fs::write(folder.join("private"), private).unwrap();
}

/// The secrets of the child process, as bytes and in their possible printed forms.
fn secrets(log: &str, private: &str) -> Vec<Vec<u8>> {
    let logged: Vec<&str> = log.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    assert!(logged.len() >= 10, "handshakes leave secrets in the log:\n{log}");
    let bytes = |hex: &str| -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    };
    let raw = logged.iter().map(|hex| bytes(hex)).chain([vec![0xd7; 32]]);
    let mut all = Vec::new();
    for secret in raw {
        all.push(secret.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes());
        // Output of `{:?}` for bytes.
        let listed: Vec<_> = secret[..16].iter().map(u8::to_string).collect();
        all.push(listed.join(", ").into_bytes());
        all.push(secret[..16].to_vec());
    }
    let encoded = private.lines().filter(|line| !line.starts_with('-'));
    all.extend(encoded.map(|line| line.as_bytes().to_vec()));
    all
}

fn has(text: &[u8], secret: &[u8]) -> bool {
    text.windows(secret.len()).any(|window| window.eq_ignore_ascii_case(secret))
}

#[test]
fn what_can_be_shown_has_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "secrecy::shows_everything", "--ignored", "--nocapture"])
        .env("SSLKEYLOGFILE", &log)
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{errors}");
    let read = |name| fs::read(folder.path().join(name)).unwrap();
    let text = |name| String::from_utf8(read(name)).unwrap();
    let secrets = secrets(&text("log"), &text("private"));
    assert!(has(&read("log"), &secrets[0]), "what is searched for is found where it is");
    let trace = read("trace");
    assert!(trace.len() > 1_000 && child.stdout.len() > 1_000);
    for (place, shown) in [("trace", &trace), ("output", &child.stdout), ("errors", &child.stderr)]
    {
        let found = secrets.iter().find(|secret| has(shown, secret));
        assert_eq!(found, None, "in the {place}");
    }
}
