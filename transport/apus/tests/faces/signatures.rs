//! The public methods of the blocking and of the async endpoint, compared by their signatures.
//!
//! In a packaged crate the sources are there as well: the test needs no checkout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A public method: its signature without `async`, and whether it is `async`.
#[derive(Debug, PartialEq)]
struct Method {
    signature: String,
    is_async: bool,
}

/// Returns the public methods that a file of `src` defines, by name.
///
/// Relies on rustfmt: a method starts with four spaces, and its body with ` {` at the end of a
/// line.
fn methods(file: &str) -> BTreeMap<String, Method> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let text = fs::read_to_string(&path).unwrap();
    let mut methods = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(first) = lines.next() {
        let Some(first) = first.strip_prefix("    pub ") else { continue };
        let mut signature = first.to_owned();
        while !signature.ends_with('{') {
            let Some(next) = lines.next() else { break };
            signature = format!("{signature} {}", next.trim());
        }
        let is_async = signature.starts_with("async ");
        let signature = signature.trim_start_matches("async ").trim_start_matches("const ");
        // rustfmt breaks the longer of two signatures.
        let signature = signature.replace("( ", "(").replace(", )", ")");
        let Some(name) = signature.strip_prefix("fn ") else { continue };
        let name = name.split(['(', '<']).next().unwrap().to_owned();
        let signature = signature.trim_end_matches(" {").to_owned();
        methods.insert(name, Method { signature, is_async });
    }
    methods
}

/// Whether a method waits, so that it is `async` at an async endpoint.
fn waits(name: &str) -> bool {
    name != "builder" && !name.starts_with("try_")
}

#[test]
fn both_endpoints_have_the_same_methods() {
    for (blocking, asynchronous) in
        [("endpoint.rs", "tokio/endpoint.rs"), ("builder/blocking.rs", "tokio/builder.rs")]
    {
        let blocking = methods(blocking);
        assert!(blocking.len() > 3, "{blocking:?}");
        assert!(blocking.values().all(|method| !method.is_async), "{blocking:?}");
        let expected: BTreeMap<_, _> = blocking
            .into_iter()
            .map(|(name, method)| {
                let is_async = waits(&name);
                (name, Method { is_async, ..method })
            })
            .collect();
        assert_eq!(methods(asynchronous), expected);
    }
}

#[test]
fn a_reply_is_the_same_for_both() {
    let (blocking, asynchronous) = (methods("request.rs"), methods("tokio/request.rs"));
    // An async request dereferences to a blocking one, which has the methods that do not wait.
    assert_eq!(asynchronous.keys().collect::<Vec<_>>(), ["reply", "reply_or_keep"]);
    for (name, method) in &asynchronous {
        assert_eq!(method.signature, blocking[name].signature);
        assert!(method.is_async, "{name}");
    }
    let others = blocking.iter().filter(|(name, _)| !asynchronous.contains_key(*name));
    for (name, method) in others {
        let returns_at_once = [
            "payload",
            "take_payload",
            "peer_addr",
            "peer_identity",
            "peer_credentials",
            "watch_client",
            "watch_process",
        ]
        .contains(&name.as_str());
        assert!(returns_at_once, "does {name} wait? {method:?}");
    }
}
