"""The main job: tables that are published on a schedule, priced before they run, with a bundle that defends them."""
