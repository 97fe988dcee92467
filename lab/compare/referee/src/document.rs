//! The tables as Markdown.

use std::fmt::Write;

use apus_report::findings::{Findings, Part};
use apus_report::result::{Table, table};

/// Returns tables, ratios and settings as Markdown.
pub(crate) fn markdown(findings: &Findings) -> String {
    let outcome = &findings.outcome;
    let settings = table::settings(outcome);
    let settings: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let origin = table::origin(outcome);
    let mut text = format!("{}\n\n{origin}; {}\n", findings.lead, settings.join(", "));
    let shown = findings.sections.iter().filter(|section| !section.page_only);
    let parts = shown.flat_map(|section| &section.parts);
    for part in parts {
        if let Part::Table(table) = part {
            write_table(table, &mut text);
        }
    }
    if !outcome.ratios.is_empty() {
        write_table(&table::ratios(&outcome.ratios), &mut text);
    }
    text.push('\n');
    for (name, words) in table::contenders(outcome) {
        let _ = writeln!(text, "- **{name}** {words}");
    }
    for note in &outcome.notes {
        let _ = writeln!(text, "\n{note}");
    }
    text
}

fn write_table(table: &Table, text: &mut String) {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> = table.header.iter().map(|_| "---".to_owned()).collect();
    let _ = write!(text, "\n**{}**\n\n{}{}", table.title, line(&table.header), line(&rule));
    text.extend(table.lines.iter().map(|cells| line(cells)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_line_by_line() {
        let mut text = String::new();
        let lines = vec![vec!["apus".to_owned(), "6.1".to_owned()]];
        write_table(&Table::new("p50, µs", ["", "rtt-100"], lines), &mut text);
        assert_eq!(text, "\n**p50, µs**\n\n|  | rtt-100 |\n| --- | --- |\n| apus | 6.1 |\n");
    }
}
