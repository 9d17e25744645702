# For people. CI calls the scripts in ci/, whose exit codes count (make turns every failure into 2).
