//! C and C++ programs, compiled against the header and the static library and run: the examples and
//! a program that misuses the API, with AddressSanitizer where the compiler supports it.
//!
//! Without a compiler the tests print that and pass.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A compiler, and the flags for it.
#[derive(Clone, Copy)]
struct Compiler {
    program: &'static str,
    standard: &'static str,
}

const C: Compiler = Compiler { program: "cc", standard: "-std=c11" };
const CXX: Compiler = Compiler { program: "c++", standard: "-std=c++17" };

/// Warning flags; a warning is an error.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L"];

const ADDRESS_SANITIZER: [&str; 2] = ["-fsanitize=address,undefined", "-g"];

/// System libraries needed by the static library.
const LIBRARIES: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// The folder of this test's executable and of the library.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

impl Compiler {
    /// Compiles a program with the static library. The error is the compiler's output.
    fn compile(self, source: &Path, output: &Path, flags: &[&str]) -> Result<(), String> {
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
        let result = Command::new(self.program)
            .args([self.standard, "-I"])
            .arg(include)
            .args(STRICT)
            .args(flags)
            .arg(source)
            .arg(libraries().join("libapus_capi.a"))
            .args(LIBRARIES)
            .arg("-o")
            .arg(output)
            .output()
            .map_err(|error| format!("{}: {error}", self.program))?;
        let text = String::from_utf8_lossy(&result.stderr).into_owned();
        if result.status.success() { Ok(()) } else { Err(text) }
    }

    /// Returns whether the compiler can build and link a program with these flags.
    fn works(self, flags: &[&str]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("nothing.c");
        std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let output = folder.path().join("nothing");
        let built = Command::new(self.program)
            .args(["-x", if self.program == "cc" { "c" } else { "c++" }])
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(&output)
            .output();
        let works = built.is_ok_and(|built| built.status.success())
            && Command::new(&output).status().is_ok_and(|status| status.success());
        if !works {
            eprintln!("SKIPPED: {} does not work here with {flags:?}", self.program);
        }
        works
    }

    /// Compiles a program into `folder`; `None` without a compiler.
    fn build(self, source: &str, folder: &Path) -> Option<PathBuf> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let flags = [&ADDRESS_SANITIZER[..], &[]].into_iter().find(|flags| self.works(flags))?;
        let program = folder.join(source.file_stem().unwrap());
        if let Err(error) = self.compile(&source, &program, flags) {
            panic!("{}: {error}", source.display());
        }
        Some(program)
    }

    /// Compiles and runs a program, and returns its output; `None` without a compiler.
    fn run(self, source: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let program = self.build(source, folder.path())?;
        let Output { status, stdout, stderr } = Command::new(&program).output().unwrap();
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{source}: {status}\n{stderr}");
        Some(String::from_utf8(stdout).unwrap())
    }
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The programs of docs/c.md.
#[test]
fn a_server_and_a_call_are_two_programs() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = C.build("examples/serve.c", folder.path()) else { return };
    let call = C.build("examples/call.c", folder.path()).unwrap();
    let server = Command::new(server).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn();
    let mut server = Process(server.unwrap());
    let mut address = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let called = Command::new(&call).arg(address.trim()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&called.stdout), "HELLO\n", "{called:?}");
    drop(server);
    let called = Command::new(&call).arg(address.trim()).output().unwrap();
    assert!(!called.status.success());
    assert!(String::from_utf8_lossy(&called.stderr).contains("not executed"), "{called:?}");
}

#[test]
fn the_example_in_c_works() {
    if let Some(printed) = C.run("examples/echo.c") {
        assert!(printed.starts_with("HELLO\n100 responses\nno server, no response\n"), "{printed}");
    }
}

#[test]
fn the_example_in_cpp_works() {
    if let Some(printed) = CXX.run("examples/fan_out.cpp") {
        assert_eq!(printed, "2 answers, 1 call cancelled\n");
    }
}

#[test]
fn misuse_is_an_error_and_never_a_crash() {
    if let Some(printed) = C.run("tests/programs/misuse.c") {
        assert_eq!(printed, "0 failures\n");
    }
}

#[test]
fn a_child_of_a_fork_changes_nothing_for_its_parent() {
    if let Some(printed) = C.run("tests/programs/fork.c") {
        assert_eq!(printed, "0 failures\n");
    }
}

#[test]
fn options_seal_packets_and_counters_can_be_read() {
    if let Some(printed) = C.run("tests/programs/sealed.c") {
        let expected =
            "sealed\nuntrusted, not executed\n1 response\nin the list\ninvalid_argument\n";
        assert_eq!(printed, expected);
    }
}

/// Verifies that the sanitizer works: it finds a deliberate error.
#[test]
fn the_sanitizer_finds_a_buffer_that_is_not_freed() {
    if !C.works(&ADDRESS_SANITIZER) {
        return;
    }
    let source =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/echo.c"));
    // Nothing frees the responses of the event loop any more, and nothing points to them. All
    // endpoints are freed, so that no thread of theirs has a pointer when the program ends.
    let (freed, forgotten) =
        ("apus_buffer_free(response);", "memset(response, 0, sizeof *response);");
    let source = source.unwrap();
    assert!(source.contains(freed));
    let source = source.replace(freed, forgotten);
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("leak.c"), folder.path().join("leak"));
    std::fs::write(&file, source).unwrap();
    C.compile(&file, &program, &ADDRESS_SANITIZER).unwrap();
    let run = Command::new(&program).env("ASAN_OPTIONS", "symbolize=0").output();
    let output = run.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("LeakSanitizer has encountered a fatal error") {
        eprintln!("SKIPPED: LeakSanitizer does not work here");
        return;
    }
    assert!(!output.status.success() && stderr.contains("LeakSanitizer"), "{stderr}");
}
