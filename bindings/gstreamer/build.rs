//! Gives the plugin its version and the date of its commit, which `gst-inspect-1.0` shows.

fn main() {
    gst_plugin_version_helper::info();
}
