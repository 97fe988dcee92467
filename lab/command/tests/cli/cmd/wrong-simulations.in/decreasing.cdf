# sizes that do not increase
100 0.5
50 1
