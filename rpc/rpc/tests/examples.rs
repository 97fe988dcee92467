//! The examples, which the documentation shows, run.

#[path = "../examples/greeter.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program here is a module")]
mod greeter;
#[path = "../examples/several.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program here is a module")]
mod several;

#[test]
fn a_typed_service_with_streams_and_a_deadline() {
    greeter::main().unwrap();
}

#[test]
fn several_servers_one_of_which_ends() {
    several::main().unwrap();
}
