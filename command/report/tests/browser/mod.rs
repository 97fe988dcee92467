//! A browser that opens a page and runs a script in it.
//!
//! A headless Chromium loads the page from a file, runs its script, and returns the document and
//! the console output: errors, and resources that the page's security policy blocked.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A browser that is installed here.
pub(crate) struct Browser {
    program: PathBuf,
}

/// The result of opening a page.
pub(crate) struct Seen {
    /// Console output; empty without errors.
    pub(crate) console: Vec<String>,
    /// Number of interactive charts.
    pub(crate) charts: usize,
    /// Number of sortable tables.
    pub(crate) tables: usize,
    /// Resources that the page requested.
    pub(crate) loaded: Value,
    /// Return value of the test's script.
    pub(crate) answer: Value,
}

/// The script that is added to every page; it awaits the script of the test.
const ASK: &str = r#"<script>
addEventListener("load", async () => {
  const seen = { charts: null, tables: null, loaded: null, answer: null };
  const { charts, tables } = document.documentElement.dataset;
  seen.charts = Number(charts);
  seen.tables = Number(tables);
  seen.answer = await (async () => { ASKED })();
  seen.loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  document.documentElement.dataset.seen = JSON.stringify(seen);
});
</script>"#;

impl Browser {
    /// Returns the browser of this machine; reports it on standard error if there is none.
    pub(crate) fn here() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let programs =
            env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
        let found = programs.into_iter().find(|program| program.is_file());
        if found.is_none() {
            // Unlike `eprintln`, this is visible even if the test passes.
            let skipped = b"SKIPPED: no browser opened the page (Debian: apt install chromium)\n";
            io::stderr().write_all(skipped).unwrap();
        }
        found.map(|program| Self { program })
    }

    /// Opens the page and runs `asked`, the body of an asynchronous function, after all other
    /// scripts.
    pub(crate) fn open(&self, page: &str, asked: &str) -> Seen {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        let (head, tail) = page.rsplit_once("</body>").expect("a page has a body");
        fs::write(&file, format!("{head}{}</body>{tail}", ASK.replace("ASKED", asked))).unwrap();
        let output = Command::new(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync"])
            // Virtual time, so that timers do not delay the test.
            .args(["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"])
            .args(["--window-size=1000,800"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg(format!("file://{}", file.display()))
            .output()
            .unwrap();
        let [document, log] = [output.stdout, output.stderr].map(String::from_utf8);
        let (document, log) = (document.unwrap(), log.unwrap());
        let console: Vec<String> =
            log.lines().filter(|line| line.contains(":CONSOLE:")).map(str::to_owned).collect();
        let Some((_, seen)) = document.split_once("data-seen=\"") else {
            panic!("the page did not finish; console: {console:?}; log: {log}")
        };
        let seen: Value =
            serde_json::from_str(&unescaped(seen.split('"').next().unwrap())).unwrap();
        let count = |name: &str| usize::try_from(seen[name].as_u64().unwrap_or(0)).unwrap();
        Seen {
            console,
            charts: count("charts"),
            tables: count("tables"),
            loaded: seen["loaded"].clone(),
            answer: seen["answer"].clone(),
        }
    }
}

/// Returns an attribute without escapes.
fn unescaped(attribute: &str) -> String {
    let escapes =
        [("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\u{a0}"), ("&amp;", "&")];
    escapes.iter().fold(attribute.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

/// Opens a page and checks the properties of all pages: scripts end without an error, the numbers
/// of charts and tables are as expected, and no resource is loaded. Returns the value of the script
/// `asked`, or `None` without a browser.
pub(crate) fn open(page: &str, (charts, tables): (usize, usize), asked: &str) -> Option<Value> {
    let seen = Browser::here()?.open(page, asked);
    assert!(seen.console.is_empty(), "{:#?}", seen.console);
    assert_eq!(seen.loaded, Value::Array(Vec::new()), "a self-contained page");
    assert_eq!((seen.charts, seen.tables), (charts, tables), "charts and tables");
    Some(seen.answer)
}

/// Returns the visible content of a page, without its style sheet, script, and security policy.
pub(crate) fn content(page: &str) -> String {
    let mut content = page.to_owned();
    for (start, end) in
        [("<style>", "</style>"), ("<script>", "</script>"), ("<meta http-equiv", ">")]
    {
        while let Some(from) = content.find(start) {
            let upto = from + content[from..].find(end).expect("closed") + end.len();
            content.replace_range(from..upto, "");
        }
    }
    content
}
