//! The book in `docs/book` and the documents beside it: every chapter is listed, links and pictures are there, and every
//! Rust program is one that the documentation tests compile.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The chapters' file names.
fn chapters() -> BTreeSet<String> {
    let files = fs::read_dir(root().join("docs/book/src")).expect("the book");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect()
}

/// What lies outside of blocks of code.
fn prose(text: &str) -> String {
    let mut code = false;
    let outside = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    });
    outside.collect::<Vec<_>>().join("\n")
}

/// The targets of links and the sources of pictures.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let mut links = Vec::new();
    for (begin, end) in [("](", ')'), ("src=\"", '"')] {
        for rest in prose.split(begin).skip(1) {
            links.push(rest.split(end).next().unwrap_or_default().to_owned());
        }
    }
    links
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let kept = line.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || "- _".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(anchor).collect()
}

/// Links of a page that lead nowhere.
fn broken(page: &Path) -> Vec<String> {
    let text = read(page);
    let folder = page.parent().expect("a folder");
    let mut broken = Vec::new();
    for link in links(&text) {
        if link.starts_with("https://") || link.starts_with("http://") {
            continue;
        }
        let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = if path.is_empty() { page.to_owned() } else { folder.join(path) };
        let found = target.exists() && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
        if !found {
            broken.push(format!("{}: {link}", page.display()));
        }
    }
    broken
}

#[test]
fn each_chapter_is_listed_once() {
    let listed = links(&read(&root().join("docs/book/src/SUMMARY.md")));
    let distinct: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(distinct.len(), listed.len(), "a chapter is listed twice: {listed:?}");
    assert_eq!(distinct, chapters());
}

#[test]
fn links_lead_to_pages_headings_and_pictures() {
    let mut pages: Vec<PathBuf> =
        chapters().iter().map(|name| root().join("docs/book/src").join(name)).collect();
    let beside = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    pages.extend(beside.map(|name| root().join(name)));
    let broken: Vec<String> = pages.iter().flat_map(|page| broken(page)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The book is rendered from its own folder: what lies elsewhere would be missing there.
#[test]
fn chapters_link_to_chapters_and_their_pictures() {
    let mut outside = Vec::new();
    for name in chapters() {
        let links = links(&read(&root().join("docs/book/src").join(&name)));
        outside.extend(
            links.into_iter().filter(|link| link.starts_with("..")).map(|link| format!("{name}: {link}")),
        );
    }
    assert!(outside.is_empty(), "{outside:#?}");
}

#[test]
fn each_picture_is_shown() {
    let mut shown = BTreeSet::new();
    for name in chapters() {
        shown.extend(links(&read(&root().join("docs/book/src").join(&name))));
    }
    let readme = links(&read(&root().join("README.md")));
    shown.extend(readme.iter().filter_map(|link| link.strip_prefix("docs/book/src/")).map(str::to_owned));
    let pictures = fs::read_dir(root().join("docs/book/src/pictures")).expect("pictures");
    let pictures = pictures.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    // The example `figure` draws this one, for readers who want a picture to try networks on.
    let unused: Vec<String> = pictures
        .filter(|name| name != "figure.png" && !shown.contains(&format!("pictures/{name}")))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn each_program_is_compiled_by_the_documentation_tests() {
    let library = read(&root().join("src/lib.rs"));
    for name in chapters() {
        let text = read(&root().join("docs/book/src").join(&name));
        let programs = text.lines().any(|line| line.starts_with("```rust"));
        let included = library.contains(&format!("\"../docs/book/src/{name}\""));
        assert_eq!(programs, included, "{name}: whether it has programs, and whether src/lib.rs includes it");
        let plain = text.lines().enumerate().filter(|(_, line)| line.starts_with("```")).step_by(2);
        let unnamed: Vec<usize> = plain.filter(|(_, line)| *line == "```").map(|(at, _)| at + 1).collect();
        assert!(unnamed.is_empty(), "{name}: blocks of code that name no language, at lines {unnamed:?}");
    }
}
