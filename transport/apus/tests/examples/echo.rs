//! `echo`.

use crate::program::{ExampleServer, failure, output};

#[test]
fn the_reply_is_the_request() {
    let server = ExampleServer::start("echo", &["serve", "127.0.0.1:0"]);
    let printed = output("echo", &["call", &server.address, "hello"]);
    assert!(printed.starts_with("hello after "), "{printed}");
}

#[test]
fn what_is_wrong_is_said() {
    assert!(failure("echo", &["call"]).starts_with("echo: usage: "));
    let no_server = failure("echo", &["call", "127.0.0.1:9", "hello"]);
    assert!(no_server.contains("the request was not executed"), "{no_server}");
}
