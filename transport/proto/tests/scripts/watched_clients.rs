//! RPC-20: clients that the application watches while it executes their requests.

use crate::script::run;

/// The lines of a transcript that contain one of these words.
fn lines(transcript: &str, words: &[&str]) -> Vec<String> {
    let has = |line: &&str| words.iter().any(|word| line.contains(word));
    transcript.lines().filter(has).map(|line| line.trim().to_owned()).collect()
}

/// Without a watch the client is not asked, however long the request takes.
#[test]
fn only_watched_clients_are_asked() {
    let transcript = run("
        meet P
        P: DATA s1 0..10/10
        +30s
        reply s1 10
    ");
    assert!(lines(&transcript, &["RESEND", "gone"]).is_empty(), "{transcript}");
    let transcript = run("
        meet P
        P: DATA s1 0..10/10
        watch s1
        +100ms
    ");
    assert!(lines(&transcript, &["-> P RESEND s1"]).len() > 3, "{transcript}");
}

/// A client that waits answers BUSY, and is asked more and more rarely; its own RESENDs count, too.
#[test]
fn a_client_that_waits_keeps_its_request() {
    for alive in ["P: BUSY s1", "P: RESEND s1 everything"] {
        // Each answer comes a millisecond after a question; the longest resend interval is 250 ms.
        let answers = format!("+251ms\n{alive}\n").repeat(48);
        let transcript =
            run(&format!("meet P\nP: DATA s1 0..10/10\nwatch s1\n{answers}\nreply s1 10\n"));
        assert!(lines(&transcript, &["gone", "= "]).is_empty(), "{transcript}");
        let asked = lines(&transcript, &["-> P RESEND s1"]).len();
        assert!(asked < 100, "{alive}: {asked} questions in 12 s");
    }
}

/// A client that has cancelled the call, or lost it, and one that is silent for 5 s.
#[test]
fn a_client_that_has_gone_is_reported_once() {
    for end in ["P: ACK s1", "P: RPC_UNKNOWN s1", "+6s", "unreachable P port\n+200ms"] {
        let transcript = run(&format!(
            "meet P\nP: DATA s1 0..10/10\nwatch s1\n{end}\n+30s\nwatch s1\nreply s1 10\nlive\n"
        ));
        let told = lines(&transcript, &["gone", "lives", "= ", "clients="]);
        assert_eq!(told.len(), 5, "{end}: {transcript}");
        assert_eq!(told[0], "lives=true", "{end}");
        assert!(told[1].contains("client gone: s1"), "{end}: {told:?}");
        assert_eq!(told[2], "lives=false", "{end}");
        assert!(told[3].contains("the RPC has ended"), "{end}: {told:?}");
        assert!(told[4].contains("servers=0") && told[4].contains("timers=0"), "{end}: {told:?}");
    }
}

/// The application's own doing is no news for it.
#[test]
fn the_end_of_a_request_by_the_application_is_not_reported() {
    for end in ["reply s1 10\nP: ACK s1", "abandon s1", "shutdown"] {
        let transcript =
            run(&format!("meet P\nP: DATA s1 0..10/10\nwatch s1\n{end}\n+30s\nlive\n"));
        assert!(lines(&transcript, &["gone"]).is_empty(), "{end}: {transcript}");
        assert!(transcript.contains("timers=0"), "{end}: {transcript}");
    }
}

/// In the kernel profile a client is not asked; its cancellation ends the request.
#[test]
fn in_the_kernel_profile_clients_are_not_asked() {
    let transcript = run("
        config profile=kernel
        P: DATA s1 0..10/10
        watch s1
        +30s
        P: ACK s1
        watch s1
    ");
    assert!(lines(&transcript, &["RESEND"]).is_empty(), "{transcript}");
    assert_eq!(lines(&transcript, &["lives"]), ["lives=true", "lives=false"], "{transcript}");
}
