//! Programs in the folder of built examples.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// Returns a command that runs an example.
fn example(name: &str) -> Command {
    // The test is in `deps` of the profile's folder.
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is not built: run `cargo build --examples`", program.display());
    Command::new(program)
}

/// Runs an example to its end, and returns its output.
pub(crate) fn run(name: &str, arguments: &[&str]) -> Output {
    example(name).args(arguments).output().unwrap()
}

/// Runs an example that succeeds, and returns its standard output.
pub(crate) fn output(name: &str, arguments: &[&str]) -> String {
    let output = run(name, arguments);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs an example that fails, and returns its error message.
pub(crate) fn failure(name: &str, arguments: &[&str]) -> String {
    let output = run(name, arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A server that ends with the test.
pub(crate) struct ExampleServer {
    process: Child,
    pub(crate) address: String,
}

impl ExampleServer {
    /// Starts an example that prints `listening on ADDRESS` when it is ready.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Self {
        let mut process = example(name).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        Self { process, address }
    }
}

impl Drop for ExampleServer {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
